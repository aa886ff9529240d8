import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import path from 'node:path'
import { buildPackage, type Keys, makeKeys, startGateway, startIdentity } from '../harness/plat.ts'
import { type Server, startServer } from '../harness/proc.ts'
import { type BenchCase, type Row, row } from '../harness/report.ts'
import { median } from '../harness/stats.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const MIB = 1024 * 1024
/** Starts that count; one before them warms the compile cache. */
const STARTS = 3
/** Milliseconds without requests after which a process counts as idle. */
const IDLE_MS = 1_500

interface Subject {
  readonly name: string
  readonly maxMs: number
  readonly maxMib: number
  start(dir: string, keys: Keys): Promise<Server>
}

/** Limit of `plat help`, in milliseconds. */
const HELP_MS = 120

/** Programs of the repository, and those of the package in the folder `packed`. */
function subjectsOf(packed: string): readonly Subject[] {
  const upstream = 'http://127.0.0.1:9/mcp'
  const sources = path.join(ROOT, 'apps/cli/bin')
  return [
    { name: 'plat-gateway', maxMs: 1000, maxMib: 150, start: (dir, keys) => startGateway(dir, keys, upstream) },
    { name: 'plat-identity', maxMs: 1000, maxMib: 150, start: (dir, keys) => startIdentity(dir, keys) },
    { name: 'plat up', maxMs: 2000, maxMib: 300, start: (dir) => startUp(dir, sources) },
    {
      name: 'plat-gateway of the package',
      maxMs: 500,
      maxMib: 150,
      start: (dir, keys) => startGateway(dir, keys, upstream, { bin: packed }),
    },
    { name: 'plat up of the package', maxMs: 1000, maxMib: 300, start: (dir) => startUp(dir, packed) },
  ]
}

/** Time to a ready `/readyz`, and resident memory when idle, with a warm compile cache; and the time of `plat help`. */
export const start: BenchCase = {
  name: 'start',
  async run({ dir }) {
    const keys = await makeKeys(dir)
    const packed = buildPackage(dir)
    const rows: Row[] = []
    for (const subject of subjectsOf(packed)) rows.push(...(await measure(subject, path.join(dir, subject.name), keys)))
    return [...rows, help(packed)]
  },
}

function help(packed: string): Row {
  const times: number[] = []
  for (let run = 0; run <= STARTS; run++) {
    const began = performance.now()
    execFileSync(process.execPath, [path.join(packed, 'plat.mjs'), 'help'])
    if (run > 0) times.push(performance.now() - began)
  }
  const target = ['≤', HELP_MS] as const
  return row({ what: 'plat help of the package', value: median(times), unit: 'ms', target, detail: 'warm cache' })
}

async function measure({ name, maxMs, maxMib, start }: Subject, dir: string, keys: Keys): Promise<Row[]> {
  const times: number[] = []
  const sizes: number[] = []
  for (let run = 0; run <= STARTS; run++) {
    const began = performance.now()
    const server = await start(path.join(dir, String(run)), keys)
    try {
      await ready(server)
      const ms = performance.now() - began
      await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
      if (run > 0) {
        times.push(ms)
        sizes.push(server.rssBytes() / MIB)
      }
    } finally {
      await server.stop()
    }
  }
  return [
    row({
      what: `${name}: time to ready`,
      value: median(times),
      unit: 'ms',
      target: ['≤', maxMs],
      detail: 'warm cache',
    }),
    row({ what: `${name}: resident when idle`, value: median(sizes), unit: 'MiB', target: ['≤', maxMib], detail: '' }),
  ]
}

async function ready({ url }: Server): Promise<void> {
  const response = await fetch(`${url}/readyz`)
  await response.text()
  if (response.status !== 200) throw new Error(`void: /readyz answers ${response.status}`)
}

/** `plat up` on a copy of the quickstart, with its own state. The log line that counts is the gateway's, which comes last. */
function startUp(dir: string, programs: string): Promise<Server> {
  cpSync(path.join(ROOT, 'examples/quickstart/resources'), path.join(dir, 'resources'), { recursive: true })
  const bin = path.join(programs, 'plat.mjs')
  const ports = ['-listen', '127.0.0.1:0', '-identity-listen', '127.0.0.1:0', '-log', 'json']
  return startServer({
    name: 'up',
    dir,
    args: [bin, 'up', dir, ...ports],
    address: /"url":"(http:\/\/[^"]+:(\d+))"[^\n]*the gateway is listening/,
  })
}
