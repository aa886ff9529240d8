import { fork } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { type FlagTable, parseFlags } from '@plat/config'
import { stampSuite } from '../../tools/check/stamp.ts'
import { isCostTarget, withRows } from './cost.ts'
import type { FuzzResult, FuzzTarget } from './target.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

const FLAGS = {
  seconds: { type: 'int', default: 60, min: 1, help: 'how long each target runs' },
  seed: { type: 'int', default: -1, help: 'draws the same cases again; another each time when absent' },
  only: { type: 'string', help: 'the name of one target, or of a group: cost' },
  row: { type: 'string', help: 'only rows of the group cost whose parser, part or family contains this text' },
} as const satisfies FlagTable

/** `npm run fuzz`: every `*.fuzz.ts` of the repository for some seconds each, one line a target. */
async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, args, 'npm run fuzz --')
  if (!flags.ok) {
    console.error(`${flags.message}\n${flags.usage}`)
    return flags.help ? 0 : 2
  }
  const { seconds, only, row } = flags.values
  const seed = flags.values.seed >= 0 ? flags.values.seed : Date.now() % 2 ** 31
  const targets = (await findTargets(ROOT)).filter(
    ({ name }) => only === '' || only === name || name.startsWith(`${only}/`),
  )
  const chosen =
    row === '' ? targets : targets.filter((target) => isCostTarget(target) && withRows(target, row) !== null)
  if (chosen.length === 0) {
    console.error(row === '' ? `-only ${only}: no such target` : `-row ${row}: no such row`)
    return 2
  }
  let failed = 0
  for (const target of chosen) {
    const { cases, failures = [] } = await runTarget(target, { seconds, seed, row })
    console.log(`${target.name.padEnd(40)} cases ${cases}  failures ${failures.length}  seed ${seed}`)
    for (const failure of failures) console.log(`  ${failure}`)
    if (failures.length > 0)
      console.log(`  again: npm run fuzz -- -only '${target.name}' -seconds ${seconds} -seed ${seed}`)
    failed += failures.length
  }
  if (failed === 0 && only === '' && row === '') stampSuite(ROOT, 'fuzz')
  return failed === 0 ? 0 : 1
}

type Located = FuzzTarget & { readonly file: string }

interface RunOptions {
  readonly seconds: number
  readonly seed: number
  readonly row: string
}

/** A target that throws has found one failure. */
async function runTarget(target: Located, { seconds, seed, row }: RunOptions): Promise<FuzzResult> {
  try {
    return isCostTarget(target) ? await runAlone(target.file, seconds, row) : await target.run(seconds, seed)
  } catch (error) {
    return { cases: 0, failures: [error instanceof Error ? error.message : String(error)] }
  }
}

/** Runs a target of the group cost in a process that has loaded nothing else: the pauses of the garbage collector grow with what is loaded. */
async function runAlone(file: string, seconds: number, row: string): Promise<FuzzResult> {
  const child = fork(path.join(import.meta.dirname, 'cost-child.ts'), [file, String(seconds), row])
  let result: FuzzResult | null = null
  child.on('message', (message: FuzzResult) => {
    result = message
  })
  const [code, signal] = await once(child, 'exit')
  if (result === null) throw new Error(`${file}: its process exited (${signal ?? code})`)
  return result
}

/** The targets of the repository, in the order of their files. */
async function findTargets(root: string): Promise<readonly Located[]> {
  const files = globSync('**/*.fuzz.ts', {
    cwd: root,
    exclude: (name) => path.basename(name) === 'node_modules',
  }).sort()
  const targets: Located[] = []
  for (const file of files) {
    const module: object = await import(pathToFileURL(path.join(root, file)).href)
    if (!('target' in module) || !isTarget(module.target)) throw new Error(`${file}: exports no target {name, run}`)
    targets.push({ ...module.target, file: path.join(root, file) })
  }
  return targets
}

function isTarget(value: unknown): value is FuzzTarget {
  return (
    typeof value === 'object' && value !== null && 'name' in value && 'run' in value && typeof value.run === 'function'
  )
}

process.exitCode = await main(process.argv.slice(2))
