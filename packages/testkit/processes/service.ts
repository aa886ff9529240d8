import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A service in a separate process. */
export interface TestService {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  readonly pid: number
  /** Everything that it wrote to its log so far, one JSON object a line. */
  log(): readonly string[]
  /** SIGTERM, then waits; the answer is the exit status. */
  stop(): Promise<number | null>
}

export interface ServiceSetup {
  /** Beside `-listen`. */
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Starts `plat-<name>` of `services/<name>` by its binary on a free port; answers when it listens. */
export async function startTestService(
  name: string,
  { flags = [], env = {} }: ServiceSetup = {},
): Promise<TestService> {
  const bin = fileURLToPath(new URL(`../../../services/${name}/bin/plat-${name}.mjs`, import.meta.url))
  const child = spawn(process.execPath, [bin, '-listen', '127.0.0.1:0', ...flags], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const errors: string[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()))
  const url = await listeningUrl(child, { name, lines, errors })
  return { url, pid: child.pid ?? 0, log: () => lines, stop: () => stopped(child) }
}

/** A token that no other service has. */
export function randomToken(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url')
}

interface ServiceOutput {
  readonly name: string
  readonly lines: string[]
  readonly errors: readonly string[]
}

function listeningUrl(child: ChildProcess, { name, lines, errors }: ServiceOutput): Promise<string> {
  return new Promise((resolve, reject) => {
    if (child.stdout === null) throw new Error(`plat-${name} started without a pipe for its output`)
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line)
      const found = /"url":"(https?:[^"]+)".*"msg":"listening"/.exec(line)
      if (found?.[1] !== undefined) resolve(found[1])
    })
    child.once('error', reject)
    child.once('exit', (status) => reject(new Error(`plat-${name} ended with ${status}: ${errors.join('')}`)))
  })
}

function stopped(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    if (child.exitCode !== null) return resolve(child.exitCode)
    child.once('exit', (status) => resolve(status))
    child.kill('SIGTERM')
  })
}
