//! Registers that the hardware fills.

/// One of the three directions of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the letters say it")]
pub enum Axis {
    X,
    Y,
    Z,
}

/// A read-only register with a value of its own in every thread, block or grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Special {
    /// `%tid`: the thread in its block.
    Tid(Axis),
    /// `%ntid`: threads of a block.
    NTid(Axis),
    /// `%ctaid`: the block in its grid.
    CtaId(Axis),
    /// `%nctaid`: blocks of the grid.
    NCtaId(Axis),
    /// `%laneid`: the lane in its warp.
    LaneId,
    /// `%warpid`: the warp in its multiprocessor.
    WarpId,
    /// `%nwarpid`: most warp numbers of a multiprocessor.
    NWarpId,
    /// `%smid`: the multiprocessor.
    SmId,
    /// `%nsmid`: most multiprocessor numbers.
    NSmId,
    /// `%gridid`: the launch; 64 bits.
    GridId,
    /// `%lanemask_eq`: the bit of this lane.
    LaneMaskEq,
    /// `%lanemask_le`: bits of lanes up to this one.
    LaneMaskLe,
    /// `%lanemask_lt`: bits of lanes before this one.
    LaneMaskLt,
    /// `%lanemask_ge`: bits of lanes from this one on.
    LaneMaskGe,
    /// `%lanemask_gt`: bits of lanes behind this one.
    LaneMaskGt,
    /// `%clock`: low half of the cycle counter.
    Clock,
    /// `%clock_hi`: high half of the cycle counter.
    ClockHi,
    /// `%clock64`: the cycle counter; 64 bits.
    Clock64,
    /// `%globaltimer`: nanoseconds; 64 bits.
    GlobalTimer,
    /// `%globaltimer_lo`: low half of the nanoseconds.
    GlobalTimerLo,
    /// `%globaltimer_hi`: high half of the nanoseconds.
    GlobalTimerHi,
    /// `%envreg0` to `%envreg31`: filled by the driver; two of them hold the address of a cooperative grid's workspace.
    EnvReg(u8),
    /// `%dynamic_smem_size`: bytes of shared memory that the launch added.
    DynamicSmemSize,
    /// `%total_smem_size`: bytes of shared memory of a block, without the system's.
    TotalSmemSize,
    /// `%aggr_smem_size`: bytes of shared memory of a block, with the system's.
    AggrSmemSize,
    /// `%is_explicit_cluster`: whether the launch named a cluster; a predicate.
    IsExplicitCluster,
    /// `%clusterid`: the cluster in its grid.
    ClusterId(Axis),
    /// `%nclusterid`: clusters of the grid.
    NClusterId(Axis),
    /// `%cluster_ctaid`: the block in its cluster.
    ClusterCtaId(Axis),
    /// `%cluster_nctaid`: blocks of a cluster.
    ClusterNCtaId(Axis),
    /// `%cluster_ctarank`: the block in its cluster, as one number.
    ClusterCtaRank,
    /// `%cluster_nctarank`: blocks of a cluster, as one number.
    ClusterNCtaRank,
    /// `%current_graph_exec`: the running graph; 64 bits.
    CurrentGraphExec,
    /// `%reserved_smem_offset_begin`, `_0`, `_1`: where the system's part of shared memory begins.
    ReservedShared,
    /// `%reserved_smem_offset_end`: where it ends.
    ReservedSharedEnd,
    /// `%reserved_smem_offset_cap`: how large it may be.
    ReservedSharedCap,
}

impl Special {
    /// The register with this name, given with its percent sign and axis.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Special> {
        let plain = match name {
            "%laneid" => Special::LaneId,
            "%warpid" => Special::WarpId,
            "%nwarpid" => Special::NWarpId,
            "%smid" => Special::SmId,
            "%nsmid" => Special::NSmId,
            "%gridid" => Special::GridId,
            "%lanemask_eq" => Special::LaneMaskEq,
            "%lanemask_le" => Special::LaneMaskLe,
            "%lanemask_lt" => Special::LaneMaskLt,
            "%lanemask_ge" => Special::LaneMaskGe,
            "%lanemask_gt" => Special::LaneMaskGt,
            "%clock" => Special::Clock,
            "%clock_hi" => Special::ClockHi,
            "%clock64" => Special::Clock64,
            "%globaltimer" => Special::GlobalTimer,
            "%globaltimer_lo" => Special::GlobalTimerLo,
            "%globaltimer_hi" => Special::GlobalTimerHi,
            "%dynamic_smem_size" => Special::DynamicSmemSize,
            "%total_smem_size" => Special::TotalSmemSize,
            "%aggr_smem_size" => Special::AggrSmemSize,
            "%is_explicit_cluster" => Special::IsExplicitCluster,
            "%cluster_ctarank" => Special::ClusterCtaRank,
            "%cluster_nctarank" => Special::ClusterNCtaRank,
            "%current_graph_exec" => Special::CurrentGraphExec,
            "%reserved_smem_offset_begin"
            | "%reserved_smem_offset_0"
            | "%reserved_smem_offset_1" => Special::ReservedShared,
            "%reserved_smem_offset_end" => Special::ReservedSharedEnd,
            "%reserved_smem_offset_cap" => Special::ReservedSharedCap,
            _ => return Special::with_axis(name).or_else(|| Special::environment(name)),
        };
        Some(plain)
    }

    fn with_axis(name: &str) -> Option<Special> {
        let (register, axis) = name.split_once('.')?;
        let axis = match axis {
            "x" => Axis::X,
            "y" => Axis::Y,
            "z" => Axis::Z,
            _ => return None,
        };
        Some(match register {
            "%tid" => Special::Tid(axis),
            "%ntid" => Special::NTid(axis),
            "%ctaid" => Special::CtaId(axis),
            "%nctaid" => Special::NCtaId(axis),
            "%clusterid" => Special::ClusterId(axis),
            "%nclusterid" => Special::NClusterId(axis),
            "%cluster_ctaid" => Special::ClusterCtaId(axis),
            "%cluster_nctaid" => Special::ClusterNCtaId(axis),
            _ => return None,
        })
    }

    fn environment(name: &str) -> Option<Special> {
        let digits = name.strip_prefix("%envreg")?;
        let number: u8 = digits.parse().ok()?;
        (number < 32 && digits == number.to_string()).then_some(Special::EnvReg(number))
    }

    /// The width in bits: 1, 32 or 64.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Special::IsExplicitCluster => 1,
            Special::GridId
            | Special::Clock64
            | Special::GlobalTimer
            | Special::CurrentGraphExec => 64,
            _ => 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, Special};

    #[test]
    fn only_real_registers_have_names() {
        assert_eq!(Special::from_name("%tid.y"), Some(Special::Tid(Axis::Y)));
        assert_eq!(Special::from_name("%envreg31"), Some(Special::EnvReg(31)));
        for name in ["%tid", "%tid.w", "%envreg32", "%envreg01", "%laneid.x", "%r1", ""] {
            assert_eq!(Special::from_name(name), None, "{name}");
        }
    }
}
