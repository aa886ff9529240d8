import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { freePort } from '../local.ts'
import type { McpFixture } from './fixture.ts'

/** Maximum start time of the server on the slowest machine, and poll interval, in milliseconds. */
const START_MS = 60_000
const ASK_EVERY_MS = 50

/** The program of the server; its argument names the transport. */
export const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))

/** Starts `@modelcontextprotocol/server-everything` (Streamable HTTP, revisions with sessions) as a separate process. */
export async function startEverything(): Promise<McpFixture> {
  const port = await freePort()
  const child = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: 'ignore',
  })
  const url = `http://127.0.0.1:${port}/mcp`
  const close = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  for (let waited = 0; waited < START_MS && child.exitCode === null; waited += ASK_EVERY_MS) {
    if (await answers(url)) return { url, close }
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS))
  }
  await close()
  throw new Error('server-everything did not start')
}

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url, { method: 'DELETE' }).catch(() => null)
  await response?.body?.cancel()
  return response !== null
}
