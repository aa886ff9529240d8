import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

/** Between the end of one poll and the next one, in milliseconds. */
const EVERY_MS = 20

interface Polled {
  readonly url: string
  /** Process of the service, whose main thread answers. */
  readonly pid: number
}

/**
 * Polls `/healthz` on a separate thread, so that the work of this process is not measured. Time in which another process of the machine had the
 * processor is not counted: the scheduler states how long a thread was ready and did not run.
 */
export class HealthPoller {
  readonly #worker: Worker

  constructor({ url, pid }: Polled) {
    this.#worker = new Worker(new URL(import.meta.url), { workerData: { url: `${url}/healthz`, pid } })
  }

  /** The longest poll since the last call, one that is under way included, in milliseconds. Rejects when a poll failed. */
  async longestMs(): Promise<number> {
    const responded = Promise.withResolvers<number>()
    this.#worker.once('message', responded.resolve).once('error', responded.reject)
    this.#worker.postMessage(null)
    const longest = await responded.promise
    this.#worker.off('error', responded.reject)
    return longest
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }
}

async function poll({ url, pid }: Polled): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  let longest = 0
  let isWanted = false
  parentPort?.on('message', () => {
    isWanted = true
  })
  for (;;) {
    const began = performance.now() - waitedMs(pid)
    await get(url, agent)
    longest = Math.max(longest, performance.now() - waitedMs(pid) - began)
    if (isWanted) {
      parentPort?.postMessage(longest)
      isWanted = false
      longest = 0
    }
    await sleep(EVERY_MS)
  }
}

/** How long the main thread of a process, and this thread, were ready to run while others ran, so far, in milliseconds. */
function waitedMs(pid: number): number {
  return ['thread-self', String(pid)].reduce((sum, of) => sum + waitOf(`/proc/${of}/schedstat`), 0)
}

function waitOf(file: string): number {
  const [, waitedNs] = readFileSync(file, 'utf8').split(' ')
  return Number(waitedNs) / 1_000_000
}

function get(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    request(url, { agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${url}: ${response.statusCode}`))
      response.resume().on('end', resolve)
    })
      .on('error', reject)
      .end()
  })
}

if (!isMainThread) await poll(workerData)
