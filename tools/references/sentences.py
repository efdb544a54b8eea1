"""Thirty languages and two lines of programs, for small vocabularies and for texts to try."""

# Sentences written for this purpose: the weather is fine, we go to the market, the water is cold, the child reads.
SENTENCES = """The weather is fine today, and we are going to the market. The child reads a long book.
Das Wetter ist heute schön, und wir gehen zum Markt. Das Kind liest ein langes Buch über Flüsse.
Il fait beau aujourd'hui et nous allons au marché. L'enfant lit un long livre près de la fenêtre.
Hoy hace buen tiempo y vamos al mercado. ¿Dónde está el niño? ¡Lee un libro largo!
Hoje o tempo está bom e vamos ao mercado. A criança lê um livro comprido na estação.
Oggi il tempo è bello e andiamo al mercato. Il bambino legge un libro lungo, perché piove domani.
Dziś jest ładna pogoda i idziemy na targ. Dziecko czyta długą książkę o rzekach.
Dnes je hezké počasí a jdeme na trh. Dítě čte dlouhou knihu.
Bugün hava güzel ve pazara gidiyoruz. Çocuk uzun bir kitap okuyor.
Сегодня хорошая погода, и мы идём на рынок. Ребёнок читает длинную книгу о реках.
Днес времето е хубаво и отиваме на пазара. Детето чете дълга книга.
Сьогодні гарна погода, і ми йдемо на ринок. Дитина читає довгу книжку.
Σήμερα ο καιρός είναι καλός και πηγαίνουμε στην αγορά. Το παιδί διαβάζει ένα μεγάλο βιβλίο.
الطقس جميل اليوم، ونحن ذاهبون إلى السوق. الطفل يقرأ كتابا طويلا.
آج موسم اچھا ہے اور ہم بازار جا رہے ہیں۔ بچہ کتاب پڑھتا ہے۔
امروز هوا خوب است و ما به بازار می‌رویم.
היום מזג האוויר נאה, ואנחנו הולכים לשוק. הילד קורא ספר ארוך.
आज मौसम अच्छा है और हम बाज़ार जा रहे हैं। बच्चा किताब पढ़ता है।
আজ আবহাওয়া ভালো এবং আমরা বাজারে যাচ্ছি। শিশুটি বই পড়ে।
இன்று வானிலை நன்றாக உள்ளது, நாங்கள் சந்தைக்குப் போகிறோம்.
ఈ రోజు వాతావరణం బాగుంది, మేము సంతకు వెళ్తున్నాము.
วันนี้อากาศดี เรากำลังไปตลาด เด็กอ่านหนังสือเล่มยาว
今天天气很好，我们去市场。孩子在看一本很长的书。
今日は天気がいいので、市場へ行きます。子供が長い本を読んでいます。
오늘은 날씨가 좋아서 우리는 시장에 갑니다. 아이가 긴 책을 읽습니다.
Hôm nay trời đẹp và chúng tôi đi chợ. Đứa trẻ đọc một quyển sách dài.
Leo hali ya hewa ni nzuri na tunaenda sokoni. Mtoto anasoma kitabu kirefu.
დღეს კარგი ამინდია და ბაზარში მივდივართ.
Այսօր եղանակը լավն է, և մենք գնում ենք շուկա։
for (int i = 0; i < n; ++i) { total += values[i] * 2; }  // 3.14159, 2024-01-31, 1,000,000
def read(path): return [line.strip() for line in open(path)]  # 'it's', don't, we'll
""".strip().split("\n")
