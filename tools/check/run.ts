import { spawn } from 'node:child_process'
import path from 'node:path'
import { staleSuites } from './stamp.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** The checks in the order of the report; they run in parallel. */
const CHECKS: readonly { readonly name: string; readonly command: readonly [string, ...string[]] }[] = [
  { name: 'types', command: typesOf('types', ROOT) },
  { name: 'console', command: typesOf('console', path.join(ROOT, 'apps/console')) },
  { name: 'lint', command: ['biome', 'ci', '--colors=off', '--diagnostic-level=error'] },
  { name: 'tidy', command: [process.execPath, path.join(ROOT, 'tools/tidy/run.ts')] },
  { name: 'unused', command: ['knip', '--no-progress', '--no-config-hints'] },
]

/** The type check of a project; a later run checks only what changed, in a tenth of the time. */
function typesOf(name: string, project: string): readonly [string, ...string[]] {
  const state = path.join(ROOT, `.cache/${name}.tsbuildinfo`)
  return ['tsc', '--project', project, '--noEmit', '--incremental', '--tsBuildInfoFile', state]
}

interface Done {
  readonly ok: boolean
  readonly output: string
  readonly seconds: number
}

/** Runs a command of the repository to its end. */
function finish([program, ...args]: readonly [string, ...string[]]): Promise<Done> {
  const began = performance.now()
  const env = {
    ...process.env,
    PATH: `${path.join(ROOT, 'node_modules/.bin')}${path.delimiter}${process.env.PATH ?? ''}`,
  }
  const child = spawn(program, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const parts: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => parts.push(part))
  child.stderr.on('data', (part: Buffer) => parts.push(part))
  return new Promise((resolve) => {
    const end = (ok: boolean, extra: string) =>
      resolve({ ok, output: Buffer.concat(parts).toString() + extra, seconds: (performance.now() - began) / 1000 })
    child.once('error', (error) => end(false, `${error.message}\n`))
    child.once('close', (code) => end(code === 0, ''))
  })
}

/** `npm run check`: types, lint, tidy and unused code; one line each, and the whole output of what fails. */
async function main(): Promise<number> {
  const running = CHECKS.map(({ name, command }) => ({ name, done: finish(command) }))
  let failed = 0
  for (const { name, done } of running) {
    const { ok, output, seconds } = await done
    console.log(`${ok ? 'ok    ' : 'FAILED'} ${name.padEnd(8)} ${seconds.toFixed(1)} s`)
    if (!ok) console.log(output.trimEnd().replaceAll(/^/gm, '       '))
    if (!ok) failed++
  }
  for (const { name, script } of staleSuites(ROOT))
    console.log(`note   ${name}: not run since its code changed (${script})`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main()
