import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, Worker, workerData } from 'node:worker_threads'

/** Between the end of one poll and the next one, in milliseconds. */
const EVERY_MS = 20

/** Polls `/healthz` on a separate thread, so that the work of this process is not measured. */
export class HealthPoller {
  readonly #worker: Worker

  constructor(url: string) {
    this.#worker = new Worker(new URL(import.meta.url), { workerData: `${url}/healthz` })
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

async function poll(url: string): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  let longest = 0
  let isWanted = false
  parentPort?.on('message', () => {
    isWanted = true
  })
  for (;;) {
    const began = performance.now()
    await get(url, agent)
    longest = Math.max(longest, performance.now() - began)
    if (isWanted) {
      parentPort?.postMessage(longest)
      isWanted = false
      longest = 0
    }
    await sleep(EVERY_MS)
  }
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

if (typeof workerData === 'string') await poll(workerData)
