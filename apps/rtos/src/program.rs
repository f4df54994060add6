//! The common part of the programs: the map, the costs of the kernel, a run of all tasks, and a digest to check it.
//!
//! Invariant: a map is refused before any place starts.

use clap::{Args, ValueEnum};
use isles::hub::{
    HubDescription, HubMap, HubSystem, HubTask, KernelCosts, KernelCounts, map_of_environment, read_map,
};
use isles_app::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Arguments of all programs.
#[derive(Args, Clone, Debug, Serialize)]
pub struct HubArguments {
    /// Places of tasks and hubs: a file NAME.toml, or name=place pairs separated by commas [default: ISLES_MAP, or
    /// as in the measurements of the program]
    #[arg(long, value_name = "MAP")]
    map: Option<String>,

    /// Costs of the kernel on a modelled chip
    #[arg(long, value_name = "CHIP", default_value = "scc")]
    kernel: KernelName,
}

/// A processor for which the paper measured the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum KernelName {
    /// Intel's SCC at 533 MHz
    Scc,
    /// Texas Instruments' C6678 at 1 GHz
    C6678,
    /// Nothing
    Free,
}

impl KernelName {
    /// Returns the costs in cycles.
    ///
    /// Sputh, Lukin and Verhulst, "Transparent Programming of Many/Multi Cores with OpenComRTOS" (2012): a semaphore
    /// loop of 4 switches and 8 packets takes 2,612 cycles on the SCC and 4,500 on the C6678 (table V). A switch counts
    /// as half a packet. Copies are calibrated on the port (section IV.D): for one core of the SCC with 19.80 MB/s at
    /// 4,096 B; for the C6678 with the time of 28 KB more, from 1,148.52 MB/s at 4 KB and 2,695 at 32 KB on one core,
    /// 512 and 1,752 between two.
    fn costs(self) -> KernelCosts {
        match self {
            KernelName::Scc => {
                KernelCosts { switch: 131, packet: 261, link: 0, copy_kilobyte: 26_536, arrived_kilobyte: 0 }
            }
            KernelName::C6678 => {
                KernelCosts { switch: 225, packet: 450, link: 0, copy_kilobyte: 300, arrived_kilobyte: 126 }
            }
            KernelName::Free => KernelCosts::default(),
        }
    }
}

/// A program that is ready to run.
#[derive(Clone, Debug, Serialize)]
pub struct HubProgram<A> {
    #[serde(skip)]
    map: HubMap,
    #[serde(skip)]
    costs: KernelCosts,
    /// The argument of its description and of its tasks.
    pub arguments: A,
}

/// The result of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HubRun<V> {
    /// The value of each task, by its name.
    pub tasks: BTreeMap<String, V>,
    /// The counters of the kernels of all places.
    pub kernel: KernelCounts,
}

impl<A> HubProgram<A>
where
    A: Serialize + DeserializeOwned + Clone + 'static,
{
    /// Reads the map, or uses `usual`, and checks it against the description for the run's number of places.
    pub fn open(
        options: &HubArguments,
        arguments: A,
        describe: fn(A) -> HubDescription,
        usual: HubMap,
        places: u32,
    ) -> Result<HubProgram<A>, Failure> {
        let read = match &options.map {
            Some(map) => read_map("--map", map).map(Some),
            None => map_of_environment(),
        };
        let map = read.map_err(|error| Failure::Usage(error.to_string()))?.unwrap_or(usual);
        let mapped = describe(arguments.clone()).mapped(&map, places);
        mapped.map_err(|error| Failure::Usage(error.text().to_owned()))?;
        Ok(HubProgram { map, costs: options.kernel.costs(), arguments })
    }

    /// Runs all tasks at their places.
    pub async fn run<V, D, B, F>(self, describe: D, body: B) -> isles::Result<HubRun<V>>
    where
        V: Serialize + DeserializeOwned + 'static,
        D: Fn(A) -> HubDescription + Copy + 'static,
        B: Fn(HubTask, A) -> F + Copy + 'static,
        F: Future<Output = isles::Result<V>>,
    {
        let arguments = self.arguments.clone();
        self.run_with(arguments, describe, body).await
    }

    /// Runs all tasks at their places, with an argument other than that of the description.
    pub async fn run_with<T, V, D, B, F>(self, argument: T, describe: D, body: B) -> isles::Result<HubRun<V>>
    where
        T: Serialize + DeserializeOwned + Clone + 'static,
        V: Serialize + DeserializeOwned + 'static,
        D: Fn(A) -> HubDescription + Copy + 'static,
        B: Fn(HubTask, T) -> F + Copy + 'static,
        F: Future<Output = isles::Result<V>>,
    {
        let HubProgram { map, costs, arguments } = self;
        let system = HubSystem::open(arguments, describe, map, costs).await?;
        let (values, kernel) = system.run(argument, body).await?;
        Ok(HubRun { tasks: values.into_iter().collect(), kernel })
    }
}

/// A digest of numbers in order: FNV-1a.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    pub fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
