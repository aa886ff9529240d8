import assert from 'node:assert/strict'
import { TestClock } from '@plat/core'
import { until } from '@plat/testkit/until'
import type { CloudCall } from './cloud.ts'

/** Deadline of a cloud request, and the pause before a retry, in milliseconds. */
const TIMEOUT_MS = 5_000
const PAUSE_MS = 1_000

/** A clock that reports each requested wait, so that time advances then, and never during a request. */
export class RecordingClock extends TestClock {
  readonly waits: number[] = []

  override after(ms: number, job: () => void): () => void {
    this.waits.push(ms)
    return super.after(ms, job)
  }
}

/** A client of a cloud whose clock the test controls. */
export interface CloudRequester<T> {
  readonly cloudClock: RecordingClock
  readonly calls: readonly CloudCall[]
  ask(): Promise<T>
}

/** Sends a request, and advances time during each pause before a retry. */
export async function askThroughPauses<T>({ ask, cloudClock }: CloudRequester<T>): Promise<T> {
  cloudClock.waits.length = 0
  const { requested, over } = watched(ask())
  await until(over, 'the last try', async () => {
    const pause = cloudClock.waits.indexOf(PAUSE_MS)
    if (pause < 0) return
    cloudClock.waits.splice(pause, 1)
    await cloudClock.advance(PAUSE_MS)
  })
  return requested
}

/** Sends a request to a cloud that never responds, and advances time to its deadline. */
export async function askUntilTimeout<T>({ ask, calls, cloudClock }: CloudRequester<T>): Promise<T> {
  const { requested, over } = watched(ask())
  await until(() => calls.length > 0, 'the request')
  await cloudClock.advance(TIMEOUT_MS - 1)
  assert.equal(over(), false)
  await cloudClock.advance(1)
  return requested
}

function watched<T>(asking: Promise<T>) {
  let ended = false
  const requested = asking.finally(() => {
    ended = true
  })
  return { requested, over: () => ended }
}
