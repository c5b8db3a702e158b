#include "base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

namespace eider {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// A made-up /proc and /sys.
class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    std::string pattern = testing::TempDir() + "machineXXXXXX";
    root_ = mkdtemp(pattern.data());
    write("/proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
    write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n");
  }
  ~MachineTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  /// The file's name is core_cpus_list since Linux 5.3.
  void siblings(int cpu, const std::string& list, const std::string& file = "thread_siblings_list") {
    write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + file, list + "\n");
  }
  /// A group of version 2 that grants `quota` microseconds of every 100,000.
  void grant(const std::string& quota) {
    write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    write("/proc/self/cgroup", "0::/job\n");
    write("/sys/fs/cgroup/job/cpu.max", quota + " 100000\n");
  }
  Machine detect() const { return detect_machine(root_); }

  std::string root_;
};

TEST_F(MachineTest, CountsEachPhysicalCoreOnce) {
  for (int cpu = 0; cpu < 8; ++cpu)
    siblings(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  EXPECT_EQ(detect().physical_cores, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(detect().default_threads(), 4);
}

TEST_F(MachineTest, KeepsToTheAffinityMask) {
  for (int cpu = 0; cpu < 8; ++cpu)
    siblings(cpu, std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1));
  write("/proc/self/status", "Cpus_allowed_list:\t3,5-6\n");
  EXPECT_EQ(detect().physical_cores, (std::vector<int>{3, 5, 6}));
  write("/proc/self/status", "Cpus_allowed_list:\t2-3\n");
  EXPECT_EQ(detect().physical_cores, (std::vector<int>{2}));
}

TEST_F(MachineTest, KnowsTheNewNameOfTheSiblings) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    siblings(cpu, std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1), "core_cpus_list");
    siblings(cpu, "0-7");
  }
  EXPECT_EQ(detect().physical_cores, (std::vector<int>{0, 2, 4, 6}));
}

// Of a hybrid CPU, the fast cores run two threads each and the slow ones one.
TEST_F(MachineTest, CountsFastAndSlowCoresAlike) {
  for (int cpu = 0; cpu < 4; ++cpu)
    siblings(cpu, std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1));
  for (int cpu = 4; cpu < 8; ++cpu) siblings(cpu, std::to_string(cpu));
  EXPECT_EQ(detect().physical_cores, (std::vector<int>{0, 2, 4, 5, 6, 7}));
  EXPECT_EQ(detect().default_threads(), 6);
}

// The mask of a process names CPUs that a machine may get later, or that were switched off.
TEST_F(MachineTest, LeavesOutCpusThatAreOffline) {
  write("/proc/self/status", "Cpus_allowed_list:\t0-127\n");
  write("/sys/devices/system/cpu/online", "0-2,5\n");
  EXPECT_EQ(detect().physical_cores, (std::vector<int>{0, 1, 2, 5}));
}

TEST_F(MachineTest, QuotasAreRoundedToThreads) {
  constexpr std::pair<const char*, int> kCases[] = {
      {"max", 8},    {"1000", 1},   {"99000", 1},  {"100000", 1}, {"149000", 1}, {"150000", 2},
      {"200000", 2}, {"350000", 4}, {"740000", 7}, {"790000", 8}, {"800000", 8}, {"6400000", 8}};
  for (const auto& [quota, threads] : kCases) {
    grant(quota);
    EXPECT_EQ(detect().default_threads(), threads) << quota;
  }
}

TEST_F(MachineTest, ThreadsStayOnCoresThatAreWhollyTheirs) {
  EXPECT_EQ(std::ranges::size(detect().cores_for(8)), 8u);
  EXPECT_TRUE(detect().cores_for(7).empty());
  EXPECT_TRUE(detect().cores_for(9).empty());
  EXPECT_TRUE(Machine().cores_for(1).empty());
  grant("790000");
  EXPECT_TRUE(detect().cores_for(8).empty());
  grant("800000");
  const Machine machine = detect();
  EXPECT_TRUE(std::ranges::equal(machine.cores_for(8), machine.physical_cores));
}

TEST_F(MachineTest, WithoutTopologyEveryCpuIsACore) {
  EXPECT_EQ(detect().physical_cores.size(), 8u);
}

TEST_F(MachineTest, WithoutCgroupsRamIsTheLimit) {
  const Machine machine = detect();
  EXPECT_EQ(machine.total_memory, 16 * kGiB);
  EXPECT_EQ(machine.available_memory, 8 * kGiB);
  EXPECT_EQ(machine.cpu_quota, 0);
}

TEST_F(MachineTest, Version2TakesTheTightestAncestor) {
  write("/proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  write("/proc/self/cgroup", "0::/outer/inner\n");
  write("/sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
  write("/sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("/sys/fs/cgroup/outer/memory.max", "4294967296\n");
  write("/sys/fs/cgroup/outer/memory.current", "3221225472\n");
  write("/sys/fs/cgroup/outer/memory.stat",
        "anon 1\nfile 9\nactive_file 1073741824\ninactive_file 1073741824\n");
  const Machine machine = detect();
  EXPECT_DOUBLE_EQ(machine.cpu_quota, 1.5);
  EXPECT_EQ(machine.default_threads(), 2);
  EXPECT_EQ(machine.total_memory, 4 * kGiB);
  EXPECT_EQ(machine.available_memory, 3 * kGiB);  // 4 - (3 - 2 of page cache)
}

TEST_F(MachineTest, Version1InAContainer) {
  write("/proc/self/mountinfo",
        "41 32 0:36 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:19 - cgroup cgroup rw,memory\n"
        "42 32 0:37 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:20 - cgroup cgroup "
        "rw,cpu,cpuacct\n");
  write("/proc/self/cgroup", "9:memory:/docker/abc/job\n4:cpu,cpuacct:/docker/abc\n2:freezer:/docker/abc\n");
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  const Machine machine = detect();
  EXPECT_DOUBLE_EQ(machine.cpu_quota, 2.5);
  EXPECT_EQ(machine.default_threads(), 3);
  EXPECT_EQ(machine.total_memory, 2 * kGiB);
  EXPECT_EQ(machine.available_memory, kGiB);
}

// Both versions at once, each controller with a hierarchy of its own, as systemd mounts them.
TEST_F(MachineTest, Version1BesideAnEmptyVersion2) {
  write("/proc/self/mountinfo",
        "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("/proc/self/cgroup", "4:memory:/\n1:cpu:/outer/inner\n0::/\n");
  write("/sys/fs/cgroup/cpu/outer/cpu.cfs_quota_us", "600000\n");
  write("/sys/fs/cgroup/cpu/outer/cpu.cfs_period_us", "200000\n");
  write("/sys/fs/cgroup/cpu/outer/inner/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/outer/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(detect().cpu_quota, 3);
  EXPECT_EQ(detect().default_threads(), 3);
}

TEST_F(MachineTest, AnExceededLimitLeavesNothing) {
  write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "1000\n");
  write("/sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_EQ(detect().available_memory, 0);
}

TEST_F(MachineTest, WhatCannotBeReadIsUnlimited) {
  std::filesystem::remove_all(root_ + "/proc");
  const Machine machine = detect();
  EXPECT_GE(machine.default_threads(), 1);
  EXPECT_EQ(machine.total_memory, std::numeric_limits<std::int64_t>::max());
}

TEST(Machine, ThisOne) {
  const Machine machine = detect_machine();
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_GE(machine.physical_cores.size(), 1u);
  EXPECT_LE(machine.physical_cores.size(), static_cast<std::size_t>(CPU_COUNT(&allowed)));
  for (int cpu : machine.physical_cores) EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(cpu), &allowed));
  EXPECT_GT(machine.available_memory, 0);
  EXPECT_LE(machine.available_memory, machine.total_memory);
}

TEST(CpuList, Parses) {
  EXPECT_EQ(parse_cpu_list("0-2,7"), (std::vector<int>{0, 1, 2, 7}));
  EXPECT_EQ(parse_cpu_list("5\n"), (std::vector<int>{5}));
  EXPECT_TRUE(parse_cpu_list("").empty());
  EXPECT_TRUE(parse_cpu_list("nonsense").empty());
  EXPECT_TRUE(parse_cpu_list("4-2").empty());
  EXPECT_TRUE(parse_cpu_list("0-2000000000").empty());
}

}  // namespace
}  // namespace eider
