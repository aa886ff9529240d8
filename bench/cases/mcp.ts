import { type FileHandle, open } from 'node:fs/promises'
import path from 'node:path'
import { postBytes } from '../harness/client.ts'
import {
  type CpuSamples,
  cpuPerRequest,
  type Latency,
  pairedLatency,
  type Target,
  type Traffic,
} from '../harness/load.ts'
import { type Keys, makeKeys, sessionToken, startGateway, startOwn, withServers } from '../harness/plat.ts'
import type { Server } from '../harness/proc.ts'
import { type BenchCase, type CaseContext, type Row, row } from '../harness/report.ts'

/** Sessions under way at once: tokens are verified once and remembered, as in life. */
const SESSIONS = 16

/**
 * A governed MCP `tools/call`: token, policy of five rules, durable intent, forward, outcome; 2026-07-28, JSON both ways.
 * CPU and added latency are two runs.
 */
export const mcp: BenchCase = {
  name: 'mcp',
  async run({ dir, effort }) {
    const keys = await makeKeys(dir)
    const traffic = callTraffic(keys)
    const cpu = await withTargets(dir, keys, traffic, (targets) => cpuPerRequest(targets, effort))
    const latency = await withTargets(path.join(dir, 'latency'), keys, traffic, (targets) =>
      withCommits(dir, (commit) => pairedLatency(targets, effort.latencyRounds, { commit })),
    )
    return [cpuRow(cpu), ...latencyRows(latency)]
  },
}

async function withTargets<T>(
  dir: string,
  keys: Keys,
  traffic: Traffic,
  measure: (targets: Record<'direct' | 'floor' | 'ours', Target>) => Promise<T>,
): Promise<T> {
  return withServers(async (keep) => {
    const direct = await keep(startOwn(dir, 'upstream.ts'))
    const floor = await keep(startOwn(dir, 'relay.ts', direct.url))
    const ours = await keep(startGateway(dir, keys, `${direct.url}/mcp`))
    const target = (server: Server): Target => ({ server, traffic })
    return measure({ direct: target(direct), floor: target(floor), ours: target(ours) })
  })
}

/** The same bytes go to every target. */
export function callTraffic(keys: Keys): Traffic {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'add_note',
      arguments: { name: 'groceries', text: 'milk, bread and '.repeat(40) },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'add_note',
  }
  const requests = Array.from({ length: SESSIONS }, () => {
    const authorization = `Bearer ${sessionToken(keys.signer)}`
    return postBytes('/mcp/notes', { ...headers, authorization }, body)
  })
  const first = requests[0] ?? Buffer.alloc(0)
  return {
    request: (n) => requests[n % SESSIONS] ?? first,
    isRight: ({ status, body }) => status === 200 && body.includes('"result":{"content":[{"type":"text"'),
  }
}

/** A durable commit of what an intent weighs, alone on its file: the least that a governed call must wait for. */
const COMMIT_BYTES = 700

async function withCommits<T>(dir: string, measure: (commit: () => Promise<void>) => Promise<T>): Promise<T> {
  const file: FileHandle = await open(path.join(dir, 'commits'), 'a')
  const line = Buffer.alloc(COMMIT_BYTES, 'x')
  try {
    return await measure(async () => {
      await file.write(line)
      await file.datasync()
    })
  } finally {
    await file.close()
  }
}

function cpuRow(cpu: CpuSamples<'direct' | 'floor' | 'ours'>): Row {
  const [ours, floor, direct] = [cpu.micros('ours'), cpu.micros('floor'), cpu.micros('direct')]
  return row({
    what: 'governed call, server CPU over floor',
    value: cpu.over('ours', 'floor'),
    unit: '×',
    target: ['≤', 1.7],
    detail: `ours ${ours.toFixed(1)} µs, floor ${floor.toFixed(1)} µs, upstream ${direct.toFixed(1)} µs`,
  })
}

/** Shares of the latency target: of one durable commit, and of the floor's own median. */
const COMMIT_SHARE = 1.5
const FLOOR_SHARE = 0.15

function latencyRows(latency: Latency): Row[] {
  const added = latency.difference('ours', 'floor')
  const relay = latency.difference('floor', 'direct')
  const commit = latency.p50.get('commit') ?? Number.NaN
  const floor = latency.p50.get('floor') ?? Number.NaN
  const allowed = COMMIT_SHARE * commit + FLOOR_SHARE * floor
  const spread = `quartiles ${added.q1.toFixed(0)} to ${added.q3.toFixed(0)} µs`
  return [
    row({
      what: 'added p50 over what it may add',
      value: added.p50 / allowed,
      unit: '×',
      target: ['≤', 1],
      detail: `added ${added.p50.toFixed(0)} µs (${spread}), commit ${commit.toFixed(0)} µs, floor ${floor.toFixed(0)} µs, which adds ${relay.p50.toFixed(0)} µs`,
    }),
  ]
}

/** The part of this case that `soak` uses. */
export async function governed(context: CaseContext, use: (target: Target) => Promise<void>): Promise<void> {
  const keys = await makeKeys(context.dir)
  await withServers(async (keep) => {
    const upstream = await keep(startOwn(context.dir, 'upstream.ts'))
    const server = await keep(startGateway(context.dir, keys, `${upstream.url}/mcp`))
    await use({ server, traffic: callTraffic(keys) })
  })
}
