// Answers that the threads of a warp have side by side, several each, written together.
//
// Written one by one, each of a thread's answers is a store of its own that touches as many sectors of memory as the warp has threads.
// Where the answers of a warp follow each other, they are put into shared memory, and leave it as whole vectors.

#pragma once

#include "unaligned.cuh"

// Bytes of shared memory for a warp of whose threads each has up to so many bytes of answers: the first one need not be aligned, and
// vectors change places in rows of 128 bytes.
constexpr u32 WARP_OUTPUT_ENDS = 128;
__device__ constexpr u32 warp_output_bytes(u32 of_a_thread) { return 32 * of_a_thread + WARP_OUTPUT_ENDS; }

template <class Answer>
class WarpOutput {
    static constexpr u32 SIZE = sizeof(Answer);

    Answer *const out;
    char *to, *const room; // `to` is the vector that has the warp's first answer
    const u64 place;
    const i64 distance;
    u32 before;            // bytes of the room to the thread's first answer
    u32 first, end;        // and those that are the warp's
    bool together;

    // Neighbouring threads put their answers at equal distances: rows of 128 bytes begin with another vector each, so that these lie in
    // different banks.
    static __device__ __forceinline__ u32 slot(u32 at) { return at ^ (at >> 3 & 0x70); }

public:
    // Each thread has `count` answers, `distance` apart from the place-th on. Threads without any are the last ones. All threads of the
    // warp call it, and so they do `flush`.
    __device__ __forceinline__ WarpOutput(Answer *answers, u64 place, i64 distance, u32 count, char *room)
        : out(answers), room(room), place(place), distance(distance)
    {
        const u32 all = __ballot_sync(~0u, count != 0), lane = threadIdx.x % 32;
        const u64 next = __shfl_down_sync(~0u, place, 1);
        const bool is_last = lane == 31 || (all >> lane) <= 1;
        const bool follows = (count <= 1 || distance == 1) && (is_last || place + count == next);
        together = __all_sync(~0u, follows) && all != 0;
        const u64 begin = __shfl_sync(~0u, place, 0);
        const u64 behind = __shfl_sync(~0u, place + count, 31 - __clz(int(all | 1)));
        first = u32(u64(out + begin)) % 16;
        end = first + u32(behind - begin) * SIZE;
        before = first + u32(place - begin) * SIZE;
        to = reinterpret_cast<char *>(out + begin) - first;
    }

    // The thread's i-th answer.
    __device__ __forceinline__ void put(u32 i, Answer answer) const
    {
        if (together)
            *reinterpret_cast<Answer *>(room + slot(before + i * SIZE)) = answer;
        else
            out[place + u64(distance * i64(i))] = answer;
    }

    __device__ __forceinline__ void flush() const
    {
        __syncwarp();
        if (together) {
            const u32 lane = threadIdx.x % 32;
#pragma unroll 1
            for (u32 v = 16 * lane; v < end; v += 16 * 32) {
                if (v >= first && v + 16 <= end) {
                    *reinterpret_cast<uint4 *>(to + v) = *reinterpret_cast<const uint4 *>(room + slot(v));
                } else {
#pragma unroll 1
                    for (u32 at = max(v, first); at < min(v + 16, end); at += SIZE)
                        *reinterpret_cast<Answer *>(to + at) = *reinterpret_cast<const Answer *>(room + slot(at));
                }
            }
        }
        // What is written over afterwards stays so.
        __syncwarp();
    }
};

// The same of answers that threads have in registers: no more of each than a vector has go there at once, if all are aligned. All
// threads of the warp call it.
template <class Answer, u32 N>
__device__ __forceinline__ void write_together(Answer *out, u64 place, i64 distance, u32 count, const Answer (&answers)[N], char *room)
{
    constexpr u32 BYTES = N * sizeof(Answer);
    if constexpr (BYTES == 8 || BYTES == 16) {
        Answer *const at = out + place;
        if (__all_sync(~0u, count == 0 || count == N && distance == 1 && u64(at) % BYTES == 0)) {
            typename PackOf<BYTES>::Type pack;
            memcpy(&pack, answers, BYTES);
            if (count != 0)
                *reinterpret_cast<typename PackOf<BYTES>::Type *>(at) = pack;
            return;
        }
    }
    const WarpOutput<Answer> output(out, place, distance, count, room);
#pragma unroll
    for (u32 i = 0; i < N; ++i)
        if (i < count)
            output.put(i, answers[i]);
    output.flush();
}

// And of accumulators whose answers have `bytes` bytes.
template <class Answer, class Acc, u32 N>
__device__ __forceinline__ void write_if_of_size(void *out, u64 place, i64 distance, u32 count, u32 bytes, const Acc (&accs)[N], char *room,
    const typename Acc::Asked &asked)
{
    if constexpr ((Acc::ANSWERS & sizeof(Answer)) != 0) {
        if (bytes == sizeof(Answer)) {
            Answer answers[N];
#pragma unroll
            for (u32 i = 0; i < N; ++i)
                if (i < count)
                    accs[i].write(answers, i, asked);
            write_together(static_cast<Answer *>(out), place, distance, count, answers, room);
        }
    }
}
template <class Acc, u32 N>
__device__ __forceinline__ void write_answers(void *out, u64 place, i64 distance, u32 count, u32 bytes, const Acc (&accs)[N], char *room,
    const typename Acc::Asked &asked)
{
    write_if_of_size<u8>(out, place, distance, count, bytes, accs, room, asked);
    write_if_of_size<u16>(out, place, distance, count, bytes, accs, room, asked);
    write_if_of_size<u32>(out, place, distance, count, bytes, accs, room, asked);
    write_if_of_size<u64>(out, place, distance, count, bytes, accs, room, asked);
}
