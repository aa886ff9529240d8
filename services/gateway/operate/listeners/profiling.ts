import { Session } from 'node:inspector/promises'
import type { Clock } from '@plat/core'
import { AdminError, type AdminRoutes, queried } from '../../admin/index.ts'

/** Default and maximum duration of a profile, in seconds. */
const USUAL_SECONDS = 10
const MAX_SECONDS = 60

/** Bytes between two samples of allocations. */
const HEAP_SAMPLE_BYTES = 64 * 1024

/**
 * `GET /debug/profile?seconds=` (CPU) and `GET /debug/heap?seconds=` (allocations), for role `admin`: files that the
 * developer tools of a browser open. Both hold function names and counts, and nothing that callers sent.
 */
export function createProfiling(clock: Clock): AdminRoutes {
  let busy = false
  const profiled = async (seconds: number, take: (session: Session, wait: Promise<void>) => Promise<object>) => {
    if (busy) throw new AdminError('conflict', 'another profile is being taken')
    busy = true
    const session = new Session()
    session.connect()
    try {
      return await take(session, new Promise<void>((resolve) => void clock.after(seconds * 1000, resolve)))
    } finally {
      session.disconnect()
      busy = false
    }
  }
  return {
    mount(context) {
      context.on('GET /debug/profile', ({ query }) => profiled(secondsOf(query), cpu))
      context.on('GET /debug/heap', ({ query }) => profiled(secondsOf(query), allocations))
    },
  }
}

function secondsOf(query: unknown): number {
  const text = queried(query, 'seconds') ?? String(USUAL_SECONDS)
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (seconds < 1 || seconds > MAX_SECONDS)
    throw new AdminError('invalid_request', `seconds: must be an integer from 1 to ${MAX_SECONDS}`)
  return seconds
}

async function cpu(session: Session, wait: Promise<void>): Promise<object> {
  await session.post('Profiler.enable')
  await session.post('Profiler.start')
  await wait
  return (await session.post('Profiler.stop')).profile
}

async function allocations(session: Session, wait: Promise<void>): Promise<object> {
  await session.post('HeapProfiler.enable')
  await session.post('HeapProfiler.startSampling', { samplingInterval: HEAP_SAMPLE_BYTES })
  await wait
  return (await session.post('HeapProfiler.stopSampling')).profile
}
