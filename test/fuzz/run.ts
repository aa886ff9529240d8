import { globSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { FuzzResult, FuzzTarget } from './target.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

const USAGE = 'usage: npm run fuzz -- [--seconds <n each, default 60>] [--seed <n>] [--only <name>]'

/** `npm run fuzz`: every `*.fuzz.ts` of the repository for some seconds each, one line a target. */
async function main(args: string[]): Promise<number> {
  const options = {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    only: { type: 'string' },
  } as const
  const { values } = parseArgs({ args, options })
  const [seconds, seed] = [Number(values.seconds), Number(values.seed ?? Date.now() % 2 ** 31)]
  const targets = (await findTargets(ROOT)).filter(({ name }) => values.only === undefined || values.only === name)
  if (!(seconds > 0) || !Number.isInteger(seed) || targets.length === 0)
    throw new Error('no target, or a value that is no number')
  let failed = 0
  for (const target of targets) {
    const { cases, failures = [] } = await runTarget(target, seconds, seed)
    console.log(`${target.name.padEnd(40)} cases ${cases}  failures ${failures.length}  seed ${seed}`)
    for (const failure of failures) console.log(`  ${failure}`)
    if (failures.length > 0)
      console.log(`  again: npm run fuzz -- --only '${target.name}' --seconds ${seconds} --seed ${seed}`)
    failed += failures.length
  }
  return failed === 0 ? 0 : 1
}

/** A target that throws has found one failure. */
async function runTarget(target: FuzzTarget, seconds: number, seed: number): Promise<FuzzResult> {
  try {
    return await target.run(seconds, seed)
  } catch (error) {
    return { cases: 0, failures: [error instanceof Error ? error.message : String(error)] }
  }
}

/** The targets of the repository, in the order of their files. */
async function findTargets(root: string): Promise<readonly FuzzTarget[]> {
  const files = globSync('**/*.fuzz.ts', {
    cwd: root,
    exclude: (name) => path.basename(name) === 'node_modules',
  }).sort()
  const targets: FuzzTarget[] = []
  for (const file of files) {
    const module: object = await import(pathToFileURL(path.join(root, file)).href)
    if (!('target' in module) || !isTarget(module.target)) throw new Error(`${file}: exports no target {name, run}`)
    targets.push(module.target)
  }
  return targets
}

function isTarget(value: unknown): value is FuzzTarget {
  return (
    typeof value === 'object' && value !== null && 'name' in value && 'run' in value && typeof value.run === 'function'
  )
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`)
  process.exitCode = 2
}
