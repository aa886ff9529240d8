import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { type CpuSamples, cpuPerRequest, type Target } from '../harness/load.ts'
import { makeKeys, startGateway, startOwn, withServers } from '../harness/plat.ts'
import type { Server } from '../harness/proc.ts'
import { type BenchCase, type CaseContext, type Row, row } from '../harness/report.ts'
import { callTraffic } from './mcp.ts'

/** Connections of the two runs: the usual number, and one at which the gateway is saturated. */
const CONNECTIONS = [16, 128]
/** At least 30 rounds per run: the difference of two versions is smaller than that between plat and the baseline. */
const MIN_ROUNDS = 30

/** The part of another checkout's `bench/harness/plat.ts` that this case uses. */
interface Harness {
  readonly startGateway?: typeof startGateway
}

/**
 * The governed `tools/call` of case `mcp` through this gateway and that of another checkout, which its own harness starts, in alternating
 * rounds: same load, same upstream, one baseline.
 */
export function against(checkout: string): BenchCase {
  return {
    name: 'against',
    async run(context) {
      const startOther = await otherStart(checkout)
      const rows: Row[] = []
      for (const connections of CONNECTIONS) rows.push(...(await compare(context, startOther, connections)))
      return rows
    },
  }
}

async function otherStart(checkout: string): Promise<typeof startGateway> {
  const file = path.join(checkout, 'bench/harness/plat.ts')
  if (!existsSync(file))
    throw new Error(`-against ${checkout}: no bench/harness/plat.ts there; name the root of a checkout`)
  const harness: Harness = await import(pathToFileURL(file).href)
  if (typeof harness.startGateway !== 'function')
    throw new Error(`-against ${checkout}: its harness has no startGateway`)
  return harness.startGateway
}

async function compare(
  { dir, effort }: CaseContext,
  startOther: typeof startGateway,
  connections: number,
): Promise<Row[]> {
  const folder = path.join(dir, String(connections))
  const keys = await makeKeys(folder)
  const traffic = callTraffic(keys)
  const cpu = await withServers(async (keep) => {
    const direct = await keep(startOwn(folder, 'upstream.ts'))
    const floor = await keep(startOwn(folder, 'relay.ts', direct.url))
    const other = await keep(startOther(path.join(folder, 'other'), keys, `${direct.url}/mcp`))
    const ours = await keep(startGateway(path.join(folder, 'this'), keys, `${direct.url}/mcp`))
    const target = (server: Server): Target => ({ server, traffic })
    const rounds = effort.quick ? effort.rounds : Math.max(effort.rounds, MIN_ROUNDS)
    return cpuPerRequest(
      { floor: target(floor), other: target(other), this: target(ours) },
      { ...effort, rounds, connections },
    )
  })
  return rowsOf(cpu, connections)
}

function rowsOf(cpu: CpuSamples<'floor' | 'other' | 'this'>, connections: number): Row[] {
  const micros = (name: 'floor' | 'other' | 'this') => `${name} ${cpu.micros(name).toFixed(1)} µs`
  const floors = `over floor: other ${cpu.over('other', 'floor').toFixed(2)}, this ${cpu.over('this', 'floor').toFixed(2)}`
  return [
    row({
      what: `${connections} connections, server CPU over other`,
      value: cpu.over('this', 'other'),
      unit: '×',
      target: ['≤', 1.03],
      detail: `${micros('floor')}, ${micros('other')}, ${micros('this')}; ${floors}`,
    }),
    row({
      what: `${connections} connections, rate over other`,
      value: cpu.rateOver('this', 'other'),
      unit: '×',
      detail: `over floor: other ${cpu.rateOver('other', 'floor').toFixed(2)}, this ${cpu.rateOver('this', 'floor').toFixed(2)}`,
    }),
  ]
}
