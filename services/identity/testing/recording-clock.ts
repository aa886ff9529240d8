import assert from 'node:assert/strict'
import { TestClock } from '@plat/core'
import { until } from '@plat/testkit/until'
import type { CloudCall } from './cloud.ts'

/** How long a cloud has for its answer, and the pause before it is asked again, in milliseconds. */
const TIMEOUT_MS = 5_000
const PAUSE_MS = 1_000

/** Tells what it is asked to wait for, so that time goes by then, and never while a request is on its way. */
export class RecordingClock extends TestClock {
  readonly waits: number[] = []

  override after(ms: number, job: () => void): () => void {
    this.waits.push(ms)
    return super.after(ms, job)
  }
}

/** Whoever asks a cloud that keeps time by a clock of the test. */
export interface CloudRequester<T> {
  readonly cloudClock: RecordingClock
  readonly calls: readonly CloudCall[]
  ask(): Promise<T>
}

/** Asks, and lets time go by whenever the cloud is to be asked again after a pause. */
export async function askThroughPauses<T>({ ask, cloudClock }: CloudRequester<T>): Promise<T> {
  cloudClock.waits.length = 0
  const { asked, over } = watched(ask())
  await until(over, 'the last try', async () => {
    const pause = cloudClock.waits.indexOf(PAUSE_MS)
    if (pause < 0) return
    cloudClock.waits.splice(pause, 1)
    await cloudClock.advance(PAUSE_MS)
  })
  return asked
}

/** Asks a cloud that never answers, and lets exactly its time go by. */
export async function askUntilTimeout<T>({ ask, calls, cloudClock }: CloudRequester<T>): Promise<T> {
  const { asked, over } = watched(ask())
  await until(() => calls.length > 0, 'the request')
  await cloudClock.advance(TIMEOUT_MS - 1)
  assert.equal(over(), false)
  await cloudClock.advance(1)
  return asked
}

function watched<T>(asking: Promise<T>) {
  let ended = false
  const asked = asking.finally(() => {
    ended = true
  })
  return { asked, over: () => ended }
}
