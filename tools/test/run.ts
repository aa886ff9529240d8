import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { unshownRows } from '../requirements/shown.ts'
import { printSlowest, recordCpuTimes } from './cpu.ts'
import { executeTests } from './execute.ts'
import { groupsOf, writeGroup } from './groups.ts'
import { joinLibraries } from './libraries.ts'
import { type Plan, planTests } from './plan.ts'
import { joinServices } from './services.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Two cores are what a small machine has; a third process uses them while others wait. */
const CONCURRENCY = 3

/** A file that is not done by then hangs, in milliseconds. */
const FILE_TIMEOUT_MS = Number(process.env.PLAT_TEST_FILE_SECONDS ?? 300) * 1000

/** `npm test`: every test that needs no more than `npm ci`, in one run with one count. */
async function main(args: readonly string[]): Promise<number> {
  let plan: Plan
  try {
    plan = planTests(ROOT, args)
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    return 2
  }
  process.env.NODE_COMPILE_CACHE ??= path.join(ROOT, '.cache/compile')
  preload(await joinLibraries(ROOT))
  preload(await joinServices(ROOT, plan.whole))
  const temporary = mkdtempSync(path.join(os.tmpdir(), 'plat-tests-'))
  const times = path.join(temporary, 'cpu')
  if (plan.slowest > 0) recordCpuTimes(times)
  const groups = [...(plan.shared.length > 0 ? [plan.shared] : []), ...groupsOf(plan.live)]
  const executed = await executeTests({
    files: groups.map((files, at) => writeGroup(temporary, `group-${at}`, files)),
    concurrency: CONCURRENCY,
    timeoutMs: FILE_TIMEOUT_MS,
    names: plan.names,
  })
  if (plan.slowest > 0) printSlowest(times, plan.slowest, (file) => path.relative(ROOT, file))
  rmSync(temporary, { recursive: true })
  const unshown = plan.whole ? rowsOfWholeRun(executed.results) : 0
  executed.printCounts()
  return executed.failed > 0 || unshown > 0 ? 1 : 0
}

/** Loads a module first in every process of the tests. */
function preload(url: string | null): void {
  if (url !== null) process.env.NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ''} --import=${url}`.trim()
}

/** Keeps the results of a whole run and prints the requirements that it was to show and did not. Returns how many those are. */
function rowsOfWholeRun(results: { write(root: string, suite: 'test'): void }): number {
  results.write(ROOT, 'test')
  const { faults, notes } = unshownRows(ROOT, process.env.CI !== undefined)
  for (const line of [...faults, ...notes]) console.log(line)
  return faults.length
}

process.exitCode = await main(process.argv.slice(2))
