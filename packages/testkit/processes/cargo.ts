import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { installOnce } from './install-once.ts'

const run = promisify(execFile)

const CACHE = path.resolve(import.meta.dirname, '../../../node_modules/.cache/plat-cargo')
/** Time to build a program with its crates on the slowest machine, in milliseconds. */
const BUILD_TIMEOUT_MS = 1_500_000

/** A built program, or the reason why there is none. */
export type RustProgram = { readonly path: string } | { readonly missing: string }

/** Resolves to the program `name` of a crate with locked dependencies, which is built once for each content. */
export async function rustProgram(crate: string, name: string): Promise<RustProgram> {
  const sources = readdirSync(path.join(crate, 'src')).sort()
  const files = ['Cargo.toml', 'Cargo.lock', ...sources.map((file) => path.join('src', file))]
  const content = createHash('sha256')
  for (const file of files) content.update(readFileSync(path.join(crate, file)))
  const dir = path.join(CACHE, content.digest('hex').slice(0, 16))
  const reason = await installOnce(dir, async () => {
    mkdirSync(CACHE, { recursive: true })
    const args = ['build', '--quiet', '--locked', '--target-dir', path.join(CACHE, 'target')]
    await run('cargo', args, { cwd: crate, timeout: BUILD_TIMEOUT_MS })
    await run('install', ['-D', path.join(CACHE, 'target/debug', name), path.join(dir, name)])
  })
  return reason === null ? { path: path.join(dir, name) } : { missing: `cargo with the crates of ${name}: ${reason}` }
}

/** Starts a program that prints its URL first. */
export async function startPrinting(
  program: string,
  args: readonly string[] = [],
): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const [url] = await Promise.race([once(lines, 'line'), once(child, 'exit').then(() => [''])])
  if (typeof url !== 'string' || url === '') throw new Error(`${program} ended before it printed its URL`)
  const close = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  return { url, close }
}
