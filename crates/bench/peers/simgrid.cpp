// What SimGrid needs for the traffic of `isles bench twin`, in the words of the bench.
//
// Built at run time by `isles-bench` with g++ against libsimgrid, and started as
//
//     simgrid SECTION MODEL STYLE MESSAGES BYTES
//
// with SECTION one of `ping-pong` (two hosts of one tile), `mesh` (48 hosts on 6 x 4 tiles, as the SCC), `torus`
// (1,000 hosts on 10 x 10 x 10, as Blue Gene/P) and `program` (tasks on the mesh), and MESSAGES (there-and-backs, tasks)
// of BYTES for each host.
//
// MODEL is `plain`, where links have the bandwidth and the latency that they are given, as in the model that is compared;
// `answers`, where besides each message takes a twentieth of itself on the links back, as SimGrid's users have it unless
// they switch it off, and as credits do in the model that is compared; or `defaults`, which has that, too, and corrects
// both for TCP between clusters (latencies become 13 times as long, so less is in the way).
//
// STYLE is `direct`: one actor for each host, and `Comm::sendto_async`, which needs no mailbox and no receiver, waited for
// before the next one; a task is an actor that is created where the message has arrived. Or it is `mailbox`: a second
// actor for each host takes the messages out of a mailbox in which they are matched, as programs for SimGrid do; a task
// is what that actor does with a message.
//
// Prints `measured messages_million VALUE`: all messages by the host seconds of the run itself, the building of the
// platform left out. An engine runs once in a process, so there is one repetition and it is a cold one; so it is for the
// model that is compared, and the bench starts both often.
// It does not judge.
//
// To keep in mind: what is compared is contention on shared links, so that is on; everything else is done in the way
// that lets SimGrid be fast: one message of a host under way at a time, and with `plain` no traffic of answers.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

// The SCC at 533/800/800 and Blue Gene/P, as chips/scc.toml and chips/bluegene-p.toml describe their links.
static const double MESH_BANDWIDTH = 16.0 / 1.25e-9, MESH_LATENCY = 5e-9;
static const double TORUS_BANDWIDTH = 425e6, TORUS_LATENCY = 96e-9;
static const double SPEED = 1e9;
static const int COLUMNS = 6, ROWS = 4, CORES = 2;

static uint64_t random_bits(uint64_t &state) {  // SplitMix64
    uint64_t bits = state += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
}

// Directed links between neighbours, and routes along x first, then y.
static sg4::NetZone *mesh(std::vector<sg4::Host *> &hosts) {
    auto *zone = sg4::create_full_zone("mesh");
    for (int core = 0; core < COLUMNS * ROWS * CORES; core++)
        hosts.push_back(zone->create_host("core-" + std::to_string(core), SPEED)->seal());
    auto link = [&](const std::string &name) {
        return zone->create_link(name, MESH_BANDWIDTH)->set_latency(MESH_LATENCY)->seal();
    };
    std::vector<std::vector<sg4::Link *>> ways(COLUMNS * ROWS, std::vector<sg4::Link *>(4));
    std::vector<sg4::Link *> inside;
    for (int tile = 0; tile < COLUMNS * ROWS; tile++) {
        for (int port = 0; port < 4; port++)
            ways[tile][port] = link("link-" + std::to_string(tile) + "-" + std::to_string(port));
        inside.push_back(link("tile-" + std::to_string(tile)));
    }
    for (int from = 0; from < COLUMNS * ROWS * CORES; from++) {
        for (int to = 0; to < COLUMNS * ROWS * CORES; to++) {
            if (from == to) continue;
            std::vector<sg4::LinkInRoute> route;
            int x = from / CORES % COLUMNS, y = from / CORES / COLUMNS;
            int end_x = to / CORES % COLUMNS, end_y = to / CORES / COLUMNS;
            while (x != end_x) {
                route.emplace_back(ways[y * COLUMNS + x][x < end_x ? 0 : 1]);
                x += x < end_x ? 1 : -1;
            }
            while (y != end_y) {
                route.emplace_back(ways[y * COLUMNS + x][y < end_y ? 2 : 3]);
                y += y < end_y ? 1 : -1;
            }
            if (route.empty()) route.emplace_back(inside[from / CORES]);
            zone->add_route(hosts[from]->get_netpoint(), hosts[to]->get_netpoint(), nullptr, nullptr, route, false);
        }
    }
    return zone;
}

static sg4::NetZone *torus(std::vector<sg4::Host *> &hosts) {
    auto host = [&](sg4::NetZone *zone, const std::vector<unsigned long> &, unsigned long id) {
        hosts.push_back(zone->create_host("node-" + std::to_string(id), SPEED)->seal());
        return std::make_pair(hosts.back()->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint *>(nullptr));
    };
    return sg4::create_torus_zone("torus", nullptr, {10, 10, 10}, sg4::ClusterCallbacks(host), TORUS_BANDWIDTH, TORUS_LATENCY,
                                  sg4::Link::SharingPolicy::SPLITDUPLEX);
}

static void answer(bool first, long messages, uint64_t bytes) {
    auto *ours = sg4::Mailbox::by_name(first ? "a" : "b"), *theirs = sg4::Mailbox::by_name(first ? "b" : "a");
    static int content;
    for (long i = 0; i < messages; i++) {
        if (first) theirs->put(&content, bytes);
        ours->get<int>();
        if (!first) theirs->put(&content, bytes);
    }
}

static void there_and_back(sg4::Host *here, sg4::Host *there, long messages, uint64_t bytes) {
    for (long i = 0; i < messages; i++) {
        sg4::Comm::sendto_async(here, there, bytes)->wait();
        sg4::Comm::sendto_async(there, here, bytes)->wait();
    }
}

static void start_ping_pong(const std::vector<sg4::Host *> &hosts, bool direct, long messages, uint64_t bytes) {
    if (direct) {
        sg4::Actor::create("both", hosts[0], there_and_back, hosts[0], hosts[1], messages, bytes);
    } else {
        for (int place = 0; place < 2; place++)
            sg4::Actor::create("place", hosts[place], answer, place == 0, messages, bytes);
    }
}

static long tasks_ended;

static void task() { tasks_ended++; }

static void send(std::vector<sg4::Mailbox *> targets, uint64_t bytes) {
    static int content;
    for (auto *target : targets) target->put(&content, bytes);
}

static void receive(sg4::Mailbox *here, long messages) {
    for (long i = 0; i < messages; i++) {
        here->get<int>();
        task();
    }
}

static void send_directly(sg4::Host *here, std::vector<sg4::Host *> targets, uint64_t bytes, bool with_tasks) {
    for (auto *target : targets) {
        sg4::Comm::sendto_async(here, target, bytes)->wait();
        if (with_tasks) sg4::Actor::create("task", target, task);
    }
}

// Each host sends its messages to others at random; each takes in what comes.
static void start_random(const std::vector<sg4::Host *> &hosts, bool direct, bool with_tasks, long messages,
                         uint64_t bytes) {
    std::vector<std::vector<size_t>> targets(hosts.size());
    std::vector<long> expected(hosts.size());
    for (size_t here = 0; here < hosts.size(); here++) {
        uint64_t state = here;
        for (long i = 0; i < messages; i++) {
            size_t target = (here + 1 + random_bits(state) % (hosts.size() - 1)) % hosts.size();
            targets[here].push_back(target);
            expected[target]++;
        }
    }
    for (size_t here = 0; here < hosts.size(); here++) {
        std::vector<sg4::Mailbox *> boxes;
        std::vector<sg4::Host *> others;
        for (size_t target : targets[here]) {
            if (direct) others.push_back(hosts[target]);
            else boxes.push_back(sg4::Mailbox::by_name(hosts[target]->get_name()));
        }
        if (direct) {
            sg4::Actor::create("send", hosts[here], send_directly, hosts[here], others, bytes, with_tasks);
        } else {
            sg4::Actor::create("send", hosts[here], send, boxes, bytes);
            auto *box = sg4::Mailbox::by_name(hosts[here]->get_name());
            sg4::Actor::create("receive", hosts[here], receive, box, expected[here]);
        }
    }
}

int main(int count, char **words) {
    if (count != 6) return 2;
    std::string section = words[1], model = words[2];
    bool direct = std::string(words[3]) == "direct";
    long messages = atol(words[4]);
    uint64_t bytes = atol(words[5]);
    int none = 1;
    sg4::Engine engine(&none, words);
    if (model != "defaults") {
        sg4::Engine::set_config("network/model:CM02");
        sg4::Engine::set_config(model == "plain" ? "network/crosstraffic:0" : "network/crosstraffic:1");
        sg4::Engine::set_config("network/TCP-gamma:0");
    }
    std::vector<sg4::Host *> hosts;
    auto *zone = section == "torus" ? torus(hosts) : mesh(hosts);
    zone->seal();
    long all = section == "ping-pong" ? 2 * messages : long(hosts.size()) * messages;
    bool with_tasks = section == "program";
    if (section == "ping-pong") start_ping_pong(hosts, direct, messages, bytes);
    else start_random(hosts, direct, with_tasks, messages, bytes);
    auto start = std::chrono::steady_clock::now();
    engine.run();
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (with_tasks && tasks_ended != all) return 3;
    printf("version SimGrid %d.%d.%d\n", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR, SIMGRID_VERSION_PATCH);
    printf("measured messages_million %.9g\n", 1e-6 * double(all) / taken.count());
    return 0;
}
