import { requirements } from '../../test/conformance/requirements.ts'
import { LastRuns, SUITE_SCRIPTS, suiteOf } from '../test/results.ts'
import { type Citation, collectCitations } from './collect.ts'

/** The citations whose test ran and passed in the last whole run of its suite on this machine. */
export function passedCitations(root: string, runs: LastRuns): readonly Citation[] {
  return collectCitations(root).filter((it) => it.testLine !== null && runs.hasPassed(it.path, it.testLine))
}

/**
 * The requirements that are cited by tests of which none ran and passed. A row whose only tests belong to a suite that has not run here is
 * a note, and a fault where `allSuites` says that every suite has to run.
 */
export function unshownRows(
  root: string,
  allSuites: boolean,
): { readonly faults: readonly string[]; readonly notes: readonly string[] } {
  const runs = new LastRuns(root)
  const cited = Map.groupBy(collectCitations(root), ({ id }) => id)
  const passed = new Set(passedCitations(root, runs).map(({ id }) => id))
  const faults: string[] = []
  let waiting = 0
  for (const { id } of requirements) {
    const [first, ...others] = cited.get(id) ?? []
    if (first === undefined || passed.has(id)) continue
    const elsewhere = [first, ...others].some(({ path }) => runs.missing.includes(suiteOf(path)))
    if (elsewhere && !allSuites) waiting++
    else faults.push(`${id}: no test that shows it ran and passed (${first.path}:${first.line})`)
  }
  const scripts = runs.missing.map((suite) => SUITE_SCRIPTS[suite]).join(', ')
  const notes =
    waiting > 0 ? [`note: ${waiting} requirements are shown by suites that have not run here: ${scripts}`] : []
  return { faults, notes }
}
