import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type FlagTable, parseFlags, usage } from '@plat/config'
import { against } from './cases/against.ts'
import { chat } from './cases/chat.ts'
import { exchange } from './cases/exchange.ts'
import { gatewayStart } from './cases/gateway-start.ts'
import { ledgerCommit } from './cases/ledger.ts'
import { ledgerSegments } from './cases/ledger-segments.ts'
import { ledgerStart } from './cases/ledger-start.ts'
import { ledgerVerify } from './cases/ledger-verify.ts'
import { mcp } from './cases/mcp.ts'
import { mint } from './cases/mint.ts'
import { policy } from './cases/policy.ts'
import { stages } from './cases/stages.ts'
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

const CASES: readonly BenchCase[] = [
  mcp,
  stages,
  policy,
  chat,
  mint,
  verify,
  exchange,
  ledgerCommit,
  ledgerVerify,
  ledgerSegments,
  ledgerStart,
  gatewayStart,
  start,
]

const flags = {
  only: { type: 'list', help: `the cases to run: ${CASES.map(({ name }) => name).join(', ')}` },
  against: {
    type: 'string',
    default: '',
    help: "the folder of another checkout, with its node_modules: compares the gateway of case mcp with that checkout's, and runs nothing else",
  },
  quick: { type: 'bool', help: 'shorter rounds: under two minutes, and coarser figures' },
  o: { type: 'string', default: 'table', oneOf: ['table', 'json'], help: 'how to print' },
  save: { type: 'string', default: '', help: 'a file to keep the figures in' },
} as const satisfies FlagTable

/**
 * `npm run bench`: each figure is a ratio to a baseline of the same run, compared with its target. A missed target is reported but is
 * not a failure; a case that could not be measured is void, and the exit code is 1.
 */
async function main(args: readonly string[]): Promise<number> {
  const parsed = parseFlags(flags, args, 'npm run bench --')
  if (!parsed.ok) {
    console.error(parsed.help ? parsed.usage : `${parsed.message}\n\n${parsed.usage}`)
    return parsed.help ? 0 : 2
  }
  const { values } = parsed
  const unknown = values.only.filter((name) => CASES.every((one) => one.name !== name))
  if (unknown.length > 0) {
    console.error(`no case ${unknown.join(', ')}\n\n${usage(flags, 'npm run bench --')}`)
    return 2
  }
  if (values.against !== '' && values.only.some((name) => name !== mcp.name)) {
    console.error(`-against compares the case ${mcp.name} only: omit -only`)
    return 2
  }
  const cases =
    values.against === ''
      ? CASES.filter(({ name }) => values.only.length === 0 || values.only.includes(name))
      : [against(path.resolve(values.against))]
  const table = values.o === 'table'
  const before = machine()
  if (table) console.log(`node ${before.node}, ${before.cores} cores, load ${before.load.join(' ')}\n\n${tableHead}`)
  const report = await runAll(cases, values.quick, (line) => table && console.log(line))
  const text = `${JSON.stringify(report, null, 2)}\n`
  if (!table) process.stdout.write(text)
  keep(text, report.at, values.save)
  return report.void.length === 0 ? 0 : 1
}

async function runAll(cases: readonly BenchCase[], quick: boolean, print: (line: string) => void): Promise<Report> {
  const { node, cpu, cores, load, commit } = machine()
  const rows: Report['rows'][number][] = []
  const spoilt: Report['void'][number][] = []
  for (const one of cases) {
    const dir = mkdtempSync(path.join(tmpdir(), 'plat-bench-'))
    try {
      for (const row of await one.run({ dir, effort: quick ? quickEffort : fullEffort })) {
        rows.push({ case: one.name, ...row })
        print(tableLine(one.name, row))
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      spoilt.push({ case: one.name, why })
      print(`${one.name.padEnd(8)}  void: ${why}`)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  }
  const at = new Date().toISOString()
  return { at, node, cpu, cores, loadBefore: load, loadAfter: machine().load, commit, quick, rows, void: spoilt }
}

/** Every run leaves its figures in `results/raw/`, which git ignores; `save` names a file to keep besides. */
function keep(text: string, at: string, save: string): void {
  const raw = path.join(import.meta.dirname, 'results/raw')
  mkdirSync(raw, { recursive: true })
  writeFileSync(path.join(raw, `${at.replaceAll(':', '-')}.json`), text)
  if (save !== '') writeFileSync(save, text)
}

process.exitCode = await main(process.argv.slice(2))
