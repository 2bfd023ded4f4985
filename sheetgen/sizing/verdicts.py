"""The verdict on a deployment: fits or not, by how much it falls short, and the fewest GPUs that would do."""

from __future__ import annotations

from sheetgen.formula import (
    Quantity,
    both,
    formula,
    is_number,
    largest,
    normal_share,
    number_where,
    ratio,
    round_up,
    smallest,
    where,
)
from sheetgen.units import PERCENT, PLAIN


@formula("GPUs of the replica", PLAIN)
def gpus_per_replica(
    tensor_parallel_size: Quantity, pipeline_parallel_size: Quantity, data_parallel_size: Quantity
) -> Quantity:
    """GPUs of one replica at the sizes that were stated.

    Source: INTERFACE (TP x PP x DP).
    """
    return tensor_parallel_size * pipeline_parallel_size * data_parallel_size


@formula("Fits", PLAIN)
def fits(
    runs_here: Quantity, max_concurrency: Quantity, concurrent_requests: Quantity, sequences_per_replica: Quantity
) -> Quantity:
    """True where the GPU runs the precisions, the engine would start (one request of max_model_len fits in the pool)
    and the replica holds all requests, in memory and under max_num_seqs.

    Source: INTERFACE (fits).
    """
    return both(runs_here, max_concurrency >= 1, concurrent_requests <= sequences_per_replica)


@formula("Chance that memory holds it", PERCENT)
def chance(
    kv_budget_bytes_per_gpu: Quantity,
    kv_needed_bytes_per_gpu: Quantity,
    set_pool_error_bytes_low: Quantity,
    set_pool_error_bytes_high: Quantity,
    band_end_z: Quantity,
) -> Quantity:
    """The chance that the pool of the fullest GPU holds the replica's requests, from the errors of predicted pools;
    none where no band is known.

    Source: INTERFACE (certainty): what is free over the end of the 80 % band on that side.
    """
    free = kv_budget_bytes_per_gpu - kv_needed_bytes_per_gpu
    end = where(free >= 0, -set_pool_error_bytes_low, set_pool_error_bytes_high)
    return normal_share(band_end_z * ratio(free, end, free))


@formula("Short of")
def short_bytes(
    gpus_per_replica: Quantity,
    shortage_bytes_per_gpu: Quantity,
    full_kv_blocks_per_sequence: Quantity,
    kv_block_bytes: Quantity,
    stage_fraction: Quantity,
    kv_budget_bytes_per_gpu: Quantity,
) -> Quantity:
    """Bytes that all GPUs of the replica together lack for its requests, or for one request of max_model_len, without
    which the engine does not start.

    Source: shortage_bytes_per_gpu.
    """
    longest = full_kv_blocks_per_sequence * kv_block_bytes * stage_fraction
    to_start = largest(0, longest - kv_budget_bytes_per_gpu)
    return round_up(gpus_per_replica * largest(shortage_bytes_per_gpu, to_start))


@formula("Short by")
def short_by_bytes(fits: Quantity, short_bytes: Quantity) -> Quantity:
    """Bytes by which a deployment that does not fit is short; none where it fits.

    Source: short_bytes.
    """
    return number_where(fits == 0, short_bytes)


@formula("Fewest GPUs", PLAIN)
def fewest_gpus(
    runs_here: Quantity, shortage_bytes_per_gpu: Quantity, min_gpus: Quantity, gpus_per_replica: Quantity
) -> Quantity:
    """Fewest GPUs of this kind that hold weights and cache: as many as stated where these hold them and no smaller
    number was tried; none where the GPU does not run the precisions, or no number of them would do.

    Source: INTERFACE (min_gpus).
    """
    fewer = where(is_number(min_gpus), smallest(min_gpus, gpus_per_replica), gpus_per_replica)
    return number_where(runs_here, where(shortage_bytes_per_gpu == 0, fewer, min_gpus))


@formula("Held in memory")
def sequences_held(data_parallel_size: Quantity, sequences_in_pool: Quantity) -> Quantity:
    """Sequences that all ranks hold in memory, whatever max_num_seqs admits.

    Source: sequences_in_pool.
    """
    return data_parallel_size * sequences_in_pool


@formula("Pool set outright")
def outright_pool_bytes(kv_cache_memory_bytes: Quantity, set_pool_is_limit: Quantity) -> Quantity:
    """The KV pool of one GPU that was set outright rather than as a limit, in bytes; else 0.

    Source: vLLM --kv-cache-memory-bytes.
    """
    return kv_cache_memory_bytes * (1 - set_pool_is_limit)


@formula("May be used")
def limit_bytes(fraction_of_free: Quantity, gpu_memory_bytes: Quantity, memory_budget_bytes: Quantity) -> Quantity:
    """Bytes of one GPU that the engine may use; for engines whose pool is a share of the free memory, all memory that
    they see.

    Source: memory_budget_bytes.
    """
    return where(fraction_of_free == 1, gpu_memory_bytes, memory_budget_bytes)


@formula("Left for a pool")
def left_bytes(kv_budget_bytes_per_gpu: Quantity, outright_pool_bytes: Quantity) -> Quantity:
    """Bytes of one GPU that weights and overhead leave.

    Source: kv_budget_bytes_per_gpu, before what was set outright.
    """
    return kv_budget_bytes_per_gpu + outright_pool_bytes
