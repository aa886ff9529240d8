import type { Duplex } from 'node:stream'
import type { Clock } from '@plat/core'
import { deny, isDenial, type Reply } from '../../call/index.ts'
import type { GovernedCall } from './call.ts'
import { ReviewChain } from './reviews.ts'
import { completed, died, type Ended, refused, stopped, stoppedBy } from './stopper.ts'

/** A tunnel in which nothing moves for this long is cut, in milliseconds. */
const TUNNEL_IDLE_MS = 10 * 60_000
/** No tunnel lives longer, in milliseconds. */
const TUNNEL_TOTAL_MS = 8 * 60 * 60_000

type TunnelReply = Extract<Reply, { kind: 'tunnel' }>

/** Joins the caller's connection with the upstream's until one of them ends, nothing moves any more, or the call is stopped. */
export async function tunnel(call: GovernedCall, reply: TunnelReply, clock: Clock): Promise<Ended> {
  const reviews = new ReviewChain(call, clock)
  const carried = await carry(call, reply, clock, reviews)
  const last = carried.ending === 'complete' ? await reviews.finish() : null
  const ended = isDenial(last) ? refused(last) : carried
  reviews.abandon(ended.ending)
  call.tally = reviews.tally()
  return ended
}

async function carry(call: GovernedCall, reply: TunnelReply, clock: Clock, reviews: ReviewChain): Promise<Ended> {
  const denial = reviews.open()
  const caller = denial === null ? call.sink.tunnel(reply.head, call.overheadMs(clock.monotonic())) : null
  if (caller === null) {
    reply.socket.destroy()
    return refused(denial ?? deny('not_built', 'tunnels are not built yet in this version'))
  }
  const began = clock.monotonic()
  const ended = await call.stopper.until(join(call, caller, reply.socket, clock))
  call.upstreamMs += clock.monotonic() - began
  if (ended !== stopped && ended.ending === 'complete') return ended
  caller.destroy()
  reply.socket.destroy()
  return ended === stopped ? stoppedBy(call.stopper) : ended
}

/** Resolves when both directions have ended, or one side broke. The shared timer watches the deadlines. */
function join(call: GovernedCall, caller: Duplex, upstream: Duplex, clock: Clock): Promise<Ended> {
  const total = clock.now() + TUNNEL_TOTAL_MS
  const touch = () => {
    call.deadlineAt = Math.min(clock.now() + TUNNEL_IDLE_MS, total)
  }
  call.deadlineCode = 'upstream_timeout'
  call.deadlineReason = 'the tunnel was idle, or open, for too long'
  touch()
  return new Promise((resolve) => {
    let ends = 0
    const watch = (side: Duplex, broken: Ended, count: (bytes: number) => void) => {
      side.on('data', (chunk: Uint8Array) => {
        count(chunk.byteLength)
        touch()
      })
      side.once('end', () => {
        ends++
        if (ends === 2) resolve(completed)
      })
      side.on('error', () => resolve(broken))
      side.once('close', () => resolve(ends > 0 ? completed : broken))
    }
    watch(caller, { ending: 'client', denial: null }, (bytes) => {
      call.bytesUp += bytes
    })
    watch(upstream, died(deny('upstream_error', 'the upstream closed the tunnel')), (bytes) => {
      call.bytesDown += bytes
    })
    caller.pipe(upstream)
    upstream.pipe(caller)
  })
}
