import { readdirSync } from 'node:fs'
import path from 'node:path'
import { tailLedger } from '@plat/ledger'
import { makeKeys, sessionToken, startGateway, startOwn, withServers } from '../../bench/harness/plat.ts'
import type { Server } from '../../bench/harness/proc.ts'
import { isInterrupted, type KillCount, refusedByCommand, verified } from './kill-appender.ts'

/** Calls under way at the same time. */
const CLIENTS = 8
/** Longest time between the first answer and the kill, in milliseconds: long enough that segments are sealed in some. */
const LONGEST_LIFE_MS = 500
/** Small, so that kills hit the sealing of segments. */
const SEGMENT_BYTES = 64 * 1024

/** Kills the whole gateway under MCP load, again and again. A call whose answer a client has seen must be in the ledger, once. */
export async function killGateway(dir: string, kills: number, tell: (count: KillCount) => void): Promise<KillCount> {
  const keys = await makeKeys(dir)
  const ledger = path.join(dir, 'gateway', 'audit.jsonl')
  return withServers(async (keep) => {
    const upstream = await keep(startOwn(dir, 'upstream.ts'))
    const acknowledged = new Set<string>()
    const faults: string[] = []
    const count = (): KillCount => ({
      kills: done,
      acknowledged: acknowledged.size,
      lost: 0,
      torn: tornFiles(ledger),
      sealed: segmentFiles(ledger),
      interrupted,
      faults,
    })
    let done = 0
    let interrupted = 0
    while (done < kills) {
      const gateway = await startGateway(dir, keys, `${upstream.url}/mcp`, { segmentBytes: SEGMENT_BYTES })
      await loadAndKill(gateway, sessionToken(keys.signer), acknowledged, faults)
      const fault = await verified(ledger)
      if (fault !== null) faults.push(`after kill ${done}: ${fault}`)
      if (isInterrupted(ledger)) interrupted++
      done++
      tell(count())
    }
    // The last start closes the calls of the last kill.
    await (await startGateway(dir, keys, `${upstream.url}/mcp`)).stop()
    const lost = await check(ledger, acknowledged, faults)
    return { ...count(), lost }
  })
}

async function loadAndKill(gateway: Server, token: string, acknowledged: Set<string>, faults: string[]): Promise<void> {
  let alive = true
  const first = Promise.withResolvers<void>()
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (alive) {
      const id = await call(gateway.url, token, faults).catch(() => null)
      if (id !== null) acknowledged.add(id)
      first.resolve()
    }
  })
  await first.promise
  await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_LIFE_MS))
  process.kill(gateway.pid, 'SIGKILL')
  alive = false
  await Promise.all(clients)
  await gateway.stop()
}

/** One governed call; the id under which the ledger must know it. Throws when the gateway died before the whole answer was there. */
async function call(url: string, token: string, faults: string[]): Promise<string | null> {
  const response = await fetch(`${url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'add_note', arguments: { name: 'milk' } },
    }),
  })
  const text = await response.text()
  if (response.status !== 200 || !text.includes('"result"') || text.includes('plat.dev/denial'))
    faults.push(`answer ${response.status}: ${text.slice(0, 200)}`)
  return response.headers.get('x-plat-decision-id')
}

/** Every call has one intent and one outcome, every answered one is there, and the chain is whole. Answers how many are lost. */
async function check(ledger: string, acknowledged: ReadonlySet<string>, faults: string[]): Promise<number> {
  const refused = refusedByCommand(ledger)
  if (refused !== null) faults.push(refused)
  const seen = { intent: new Map<string, number>(), outcome: new Map<string, number>() }
  for await (const { rec } of tailLedger(ledger)) {
    const calls = rec.kind === 'intent' ? seen.intent : rec.kind === 'outcome' ? seen.outcome : null
    calls?.set(String(rec.call), (calls.get(String(rec.call)) ?? 0) + 1)
  }
  for (const id of new Set([...seen.intent.keys(), ...seen.outcome.keys()])) {
    const [intents, outcomes] = [seen.intent.get(id) ?? 0, seen.outcome.get(id) ?? 0]
    if (intents !== 1 || outcomes !== 1) faults.push(`call ${id} has ${intents} intents and ${outcomes} outcomes`)
  }
  const lost = [...acknowledged].filter((id) => !seen.intent.has(id))
  if (lost.length > 0) faults.push(`call ${lost[0]} was answered and is not in the ledger`)
  return lost.length
}

function segmentFiles(ledger: string): number {
  return readdirSync(path.dirname(ledger)).filter((name) => /\.\d{20}\.jsonl$/.test(name)).length
}

function tornFiles(ledger: string): number {
  return readdirSync(path.dirname(ledger)).filter((name) => name.startsWith(`${path.basename(ledger)}.torn-`)).length
}
