import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { chat } from './cases/chat.ts'
import { ledgerCommit } from './cases/ledger.ts'
import { ledgerVerify } from './cases/ledger-verify.ts'
import { mcp } from './cases/mcp.ts'
import { mint } from './cases/mint.ts'
import { start } from './cases/start.ts'
import { verify } from './cases/verify.ts'
import {
  type BenchCase,
  fullEffort,
  machine,
  quickEffort,
  type Report,
  tableHead,
  tableLine,
} from './harness/report.ts'

const CASES: readonly BenchCase[] = [mcp, chat, mint, verify, ledgerCommit, ledgerVerify, start]

const USAGE = `usage: npm run bench -- [--only <case>] [--quick] [-o json] [--save <file>]
cases: ${CASES.map(({ name }) => name).join(', ')}`

const options = {
  only: { type: 'string', multiple: true },
  quick: { type: 'boolean', default: false },
  output: { type: 'string', short: 'o', default: 'table' },
  save: { type: 'string' },
} as const

/**
 * `npm run bench`: each figure is a ratio against a floor of the same run, judged by its target. A target that is not met is
 * told and fails nothing; a case that could not be measured is void, and the exit code is 1.
 */
async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({ args, options })
  const cases = CASES.filter(({ name }) => values.only === undefined || values.only.includes(name))
  if (cases.length === 0 || !['table', 'json'].includes(values.output)) throw new Error('no such case or output')
  const table = values.output === 'table'
  const before = machine()
  if (table) console.log(`node ${before.node}, ${before.cores} cores, load ${before.load.join(' ')}\n\n${tableHead}`)
  const report = await runAll(cases, values.quick, (line) => table && console.log(line))
  const text = `${JSON.stringify(report, null, 2)}\n`
  if (!table) process.stdout.write(text)
  keep(text, report.at, values.save)
  return report.void.length === 0 ? 0 : 1
}

async function runAll(cases: readonly BenchCase[], quick: boolean, tell: (line: string) => void): Promise<Report> {
  const { node, cpu, cores, load, commit } = machine()
  const rows: Report['rows'][number][] = []
  const spoilt: Report['void'][number][] = []
  for (const one of cases) {
    const dir = mkdtempSync(path.join(tmpdir(), 'plat-bench-'))
    try {
      for (const row of await one.run({ dir, effort: quick ? quickEffort : fullEffort })) {
        rows.push({ case: one.name, ...row })
        tell(tableLine(one.name, row))
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      spoilt.push({ case: one.name, why })
      tell(`${one.name.padEnd(8)}  void: ${why}`)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  }
  const at = new Date().toISOString()
  return { at, node, cpu, cores, loadBefore: load, loadAfter: machine().load, commit, quick, rows, void: spoilt }
}

/** Every run leaves its figures in `results/raw/`, which git ignores; `save` names a file to keep besides. */
function keep(text: string, at: string, save: string | undefined): void {
  const raw = path.join(import.meta.dirname, 'results/raw')
  mkdirSync(raw, { recursive: true })
  writeFileSync(path.join(raw, `${at.replaceAll(':', '-')}.json`), text)
  if (save !== undefined) writeFileSync(save, text)
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`)
  process.exitCode = 2
}
