"""40 conversations for chat templates: system texts, turns, tools, reasoning, and contents that are odd."""

ODD = ["", " ", "\n", "  two blanks before, and after  ", "line\nline\r\nline\n\n", "{{ messages }}{% if x %}{# c #}",
       "'single' \"double\" `back` \\n \\ slash", "emoji \U0001F999\U0001F1EA\U0001F1FA e\u0301 \u00C5ngstr\u00F6m "
       "\u4F60\u597D \u202E", "<|im_end|></s>[INST]<think>x</think><end_of_turn>", "{\"a\": [1, 2.5, null, true]}",
       "\u00A0\u2003x\u2028y\u0085z\x1c", "tab\there \x07 bell \x7f del"]

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.\nIn one line; \"now\" <b>only</b> & \u00E9\u4F60",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "the city's name"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "the unit", "default": "celsius"},
        "days": {"type": "integer", "minimum": 1}}}}}
ADD = {"type": "function", "function": {
    "name": "add", "description": "Sum of numbers", "parameters": {"type": "object", "properties": {
        "numbers": {"type": "array", "items": {"type": "number"}, "description": "what to add"},
        "options": {"type": "object", "properties": {"round": {"type": ["boolean", "null"]}}}}},
    "return": {"type": "number", "description": "the sum"}}}
NOW = {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {
    "type": "object", "properties": {}}}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def tool_call(name, arguments, number=0):
    return {"id": f"call{number:05}", "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_result(content, name="get_weather", number=0):
    return {"role": "tool", "tool_call_id": f"call{number:05}", "name": name, "content": content}


def plain_chats():
    yield [user("Hello"), assistant("Hi there!")]
    yield [system("You are terse."), user("Hello"), assistant("Hi.")]
    yield [user("Hello")]
    yield [system("Be kind."), user("1+1?"), assistant("2"), user("2+2?"), assistant("4"), user("3+3?"),
           assistant("6")]
    yield [user("one"), assistant("two"), user("three")]
    yield [system(""), user("an empty system text"), assistant("yes")]
    yield [user(""), assistant("")]
    yield [user("first"), user("second"), assistant("two users in a row")]
    yield [assistant("I begin."), user("And I follow."), assistant("Fine.")]
    yield [system("only a system text")]
    yield [user("x"), assistant("y"), system("late"), user("z"), assistant("w")]
    yield [{"role": "developer", "content": "Answer in German."}, user("Hello"), assistant("Hallo")]
    yield [{"role": "moderator", "content": "an unknown role"}, user("Hello"), assistant("Hallo")]
    for first, second in zip(ODD, ODD[1:] + ODD[:1]):
        yield [system(second), user(first), assistant(second), user(second), assistant(first)]


def chats_with_reasoning():
    yield [user("Why?"), assistant("<think>\nBecause.\n</think>\n\nSo."), user("And?"),
           assistant("<think>\nMore.\n</think>\n\nThus.")]
    yield [user("Why?"), assistant("So.", reasoning_content="Because of \"this\".\n"), user("And?"),
           assistant("Thus.", thinking="One more\nthought")]
    yield [user("Why?"), assistant([{"type": "text", "text": "Parts"}]),
           user([{"type": "text", "text": "of a text"}, {"type": "text", "text": " in two"}]), assistant("Yes.")]


def chats_with_tools():
    call = tool_call("get_weather", {"city": "\u00C5rhus \"C\"", "days": 2, "wind": None, "x": 1.5, "y": [True, {}]})
    yield [WEATHER], [user("Weather?"), assistant("", tool_calls=[call]), tool_result("{\"t\": 21.5}"),
                      assistant("21.5 degrees")]
    yield [WEATHER, ADD], [system("Use tools."), user("Weather?"),
                           assistant("Let me look.", tool_calls=[tool_call("get_weather", "{\"city\": \"Oslo\"}")]),
                           tool_result("cold"), assistant("Cold."), user("Thanks"), assistant("Welcome")]
    yield [WEATHER, ADD, NOW], [user("Both?"), assistant("", tool_calls=[tool_call("get_weather", {"city": "A"}, 1),
                                                                        tool_call("add", {"numbers": [1, 2e20]}, 2)]),
                                tool_result("rain", number=1), tool_result("3", "add", 2), assistant("Rain and 3.")]
    yield [NOW], [user("Time?"), {"role": "assistant", "tool_calls": [tool_call("now", {})]}, tool_result("12", "now"),
                  user("Again"), assistant("12 o'clock")]
    yield [WEATHER], [system("Tools are there."), user("No need for any"), assistant("Right.")]
    yield [], [user("An empty list of tools"), assistant("Right.")]
    yield [WEATHER], [user("Weather?"), {"role": "assistant", "content": None, "tool_calls": [call]},
                      tool_result({"temperature": 3, "sky": ["grey", None]}), assistant("3")]
    yield None, [user("Calls without tools"), assistant("", tool_calls=[call]), tool_result("ok"), assistant("done")]


def chats():
    """Values of the template's variables, 40 times."""
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    all_chats = [{"messages": messages} for messages in plain_chats()]
    all_chats += [{"messages": messages} for messages in chats_with_reasoning()]
    all_chats += [{"messages": messages, "tools": tools} for tools, messages in chats_with_tools()]
    all_chats += [
        {"messages": [user("Think?"), assistant("No.")], "enable_thinking": False},
        {"messages": [user("Think?")], "enable_thinking": True},
        {"messages": [user("Documents?")], "documents": [{"title": "One", "text": "Text of one"}]},
        {"messages": [system("s"), user("Date"), assistant("d")], "date_string": "26 Jul 2024", "xml_tools": ["a"]},
    ]
    for number, chat in enumerate(all_chats):
        # Templates that ask for the date themselves give another text each day.
        chat.update(tokens, add_generation_prompt=number % 3 == 0)
        chat.setdefault("date_string", "19 Nov 2026")
    assert len(all_chats) == 40, len(all_chats)
    return all_chats
