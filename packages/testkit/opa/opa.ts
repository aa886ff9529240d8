import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { freePort } from '../local.ts'
import { until } from '../until.ts'

const MODULE = path.join(import.meta.dirname, 'go')
const CACHE = path.resolve(import.meta.dirname, '../../../node_modules/.cache/plat-opa')

/** An Open Policy Agent of this test's own. */
export interface Opa {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  stop(): Promise<void>
}

/** Starts one with these policies, which takes the token alone when one is given. It is built when it is not in the cache: needs Go, and some minutes once. */
export async function startOpa(files: readonly string[], token: string | null): Promise<Opa> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const guarded = token === null ? [] : ['--authentication=token', '--authorization=basic']
  const child = spawn(
    built(),
    ['run', '--server', '--skip-version-check', `--addr=127.0.0.1:${port}`, ...guarded, ...files],
    {
      stdio: 'ignore',
    },
  )
  const answers = () =>
    fetch(`${url}/health`, { headers: { authorization: `Bearer ${token}` } }).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(async () => ended(child) || (await answers()), 'OPA to answer')
  if (ended(child)) throw new Error(`OPA ended with status ${child.exitCode}`)
  return { url, stop: () => end(child) }
}

function ended({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function end(child: ChildProcess): Promise<void> {
  if (ended(child)) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** The path of the binary that `go/go.mod` names. */
function built(): string {
  const key = createHash('sha256')
  for (const file of ['go.mod', 'go.sum']) key.update(readFileSync(path.join(MODULE, file)))
  const dir = path.join(CACHE, key.digest('hex').slice(0, 16))
  if (existsSync(dir)) return path.join(dir, 'opa')
  // Into a folder beside it first: what was interrupted is never taken for whole.
  const partial = `${dir}.${process.pid}`
  mkdirSync(partial, { recursive: true })
  const flags = ['-p', '1', '-trimpath', '-ldflags', '-s -w', '-o', path.join(partial, 'opa')]
  const { status, stderr, error } = spawnSync('go', ['build', ...flags, 'github.com/open-policy-agent/opa'], {
    cwd: MODULE,
    encoding: 'utf8',
    env: { ...process.env, CGO_ENABLED: '0' },
  })
  if (status !== 0) throw new Error(`OPA cannot be built: ${error?.message ?? stderr.trim().split('\n').at(-1)}`)
  try {
    renameSync(partial, dir)
  } catch (error) {
    // Another process built the same at the same time.
    if (!existsSync(dir)) throw error
    rmSync(partial, { recursive: true })
  }
  return path.join(dir, 'opa')
}
