#include "base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

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
  void siblings(int cpu, const std::string& list) {
    write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          list + "\n");
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
