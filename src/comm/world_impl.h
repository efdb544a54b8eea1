// The internals of a World, shared by process_world.cc and thread_world.cc, which create it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/flight_recorder.h"
#include "comm/meeting/handshake.h"
#include "comm/meeting/meeting_client.h"
#include "comm/meeting/meeting_place.h"
#include "comm/rank_env.h"
#include "comm/watchdog.h"
#include "tessera/world.h"

namespace tessera {

// Which node each rank is on, and its place there.
struct NodeLayout {
  std::vector<int> node_of_rank, local_rank_of_rank;
  int num_nodes = 1;

  // From the node ranks that the peers were given, else from their hosts; `ranks_per_node` > 0 overrides both.
  static NodeLayout of(const std::vector<Peer>& roster, int ranks_per_node);
};

struct World::Impl {
  using BackendMaker =
      std::function<c10::intrusive_ptr<c10d::Backend>(const std::vector<int>& ranks, const std::string& name)>;

  int rank = 0, size = 1;
  NodeLayout layout;
  std::vector<std::string> hosts;
  std::string backend_name;
  at::Device device = at::kCPU;
  std::shared_ptr<FlightRecorder> recorder = std::make_shared<FlightRecorder>();
  BackendMaker make_backend;
  bool is_process = false;      // a failure ends this process, not only this rank
  std::function<void()> leave;  // the last words to the others, when the world ends normally

  // Destroyed in reverse: groups first, the meeting place (and with it the store that others use) last.
  std::unique_ptr<MeetingPlace> place;    // on rank 0, if no launcher holds it
  std::shared_ptr<MeetingClient> client;  // in a process world
  c10::intrusive_ptr<c10d::Store> store;
  std::unique_ptr<Watchdog> watchdog;
  // A group is made once, by the first caller; making it does not hold up other groups.
  struct Slot {
    std::mutex mutex;
    std::unique_ptr<Group> group;
  };
  std::mutex mutex;  // guards the map, not the slots
  std::map<std::vector<int>, Slot> groups;

  Group& group(const std::vector<int>& ranks);
  // The body of this rank returned a status other than 0. Returns if the others end too; otherwise ends the run.
  void leave_with_status(int status);
  // Derived from the members alone, so that every rank uses the same name, however it made the group.
  std::string name_of_group(const std::vector<int>& ranks) const;
  std::vector<int> ranks_of_node(int node) const;
  std::vector<int> ranks_across(int local_rank) const;
  // Nodes of the members, for the order of sums.
  std::vector<int> nodes_of(const std::vector<int>& ranks) const;
  // This rank's place in a list of world ranks.
  int place_in(const std::vector<int>& ranks) const;
};

// One rank alone: needs no MPI and no other process.
std::unique_ptr<World> make_single_world(const WorldOptions& options);

// What ranks print when they come up; scripts look for these lines (SPEC: 'Running on N nodes x G GPUs = W total
// GPUs').
struct Address {
  std::string host;
  int port = 0;  // 0: there is no other rank
};

// Before the ranks meet: printed by every rank if all are to be reported.
void announce_start(const WorldOptions& options, int rank, const Address& head);
// After they have met: rank 0 prints the size of the run and its devices; every rank prints its own line if all are to
// be reported.
void announce_world(const WorldOptions& options, const World& world, const Address& head);

// Where the ranks of a run meet without asking anybody, and by which key they know each other.
struct MeetingPoint {
  Address address;
  Key key{};  // of the job
};

// Opens `place` on rank 0 if no launcher holds it. `by_mpi`: MPI runs and carries address and key, unless a launcher
// does. Otherwise they come from the environment and the user's file. Throws Error if either is missing.
MeetingPoint find_meeting_point(const RankEnv& self, bool by_mpi, std::chrono::milliseconds timeout,
                                const Environment& environment, std::unique_ptr<MeetingPlace>& place);

}  // namespace tessera
