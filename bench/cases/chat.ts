import path from 'node:path'
import { postBytes } from '../harness/client.ts'
import { type CpuSamples, cpuPerRequest, pairedFirstByte, type Target, type Traffic } from '../harness/load.ts'
import { type Keys, makeKeys, sessionToken, startGateway, startOwn, withServers } from '../harness/plat.ts'
import type { Server } from '../harness/proc.ts'
import { type BenchCase, type CaseContext, type Row, row } from '../harness/report.ts'

const ROUTE = 'bench'
const UPSTREAM_PATH = '/v1/chat/completions'
/** Time between the first chunk of a stream and the others, in milliseconds. */
const PAUSE_MS = 4

/** A governed chat completion under a budget, 1 KB in and out, whole and in 64 chunks; Portkey's gateway beside it. */
export const chat: BenchCase = {
  name: 'chat',
  async run(context) {
    const keys = await makeKeys(context.dir)
    const rows: Row[] = []
    for (const stream of [false, true]) rows.push(...(await measure(context, keys, stream)))
    return [...rows, await firstByte(context, keys)]
  },
}

function measure({ dir, effort }: CaseContext, keys: Keys, stream: boolean): Promise<Row[]> {
  const folder = path.join(dir, stream ? 'stream' : 'json')
  return withServers(async (keep) => {
    const direct = await keep(startOwn(folder, 'chat.ts'))
    const floor = await keep(startOwn(folder, 'relay.ts', direct.url, UPSTREAM_PATH))
    const ours = await keep(
      startGateway(folder, keys, direct.url, { models: { [ROUTE]: { upstream: `${direct.url}/v1` } } }),
    )
    const peer = await keep(startOwn(folder, 'portkey.mjs'))
    const target = (server: Server, at: string, headers: Readonly<Record<string, string>> = {}): Target => ({
      server,
      traffic: traffic(at, headers, stream),
    })
    const targets = {
      floor: target(floor, UPSTREAM_PATH),
      ours: target(ours, `/llm/${ROUTE}${UPSTREAM_PATH}`, {
        authorization: `Bearer ${sessionToken(keys.signer, `models:${ROUTE}`)}`,
      }),
      peer: target(peer, UPSTREAM_PATH, {
        authorization: 'Bearer none',
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${direct.url}/v1`,
      }),
    }
    return cpuRows(await cpuPerRequest(targets, effort), stream)
  })
}

/** The measurement starts when the upstream sends the first byte. */
function firstByte({ dir, effort }: CaseContext, keys: Keys): Promise<Row> {
  const folder = path.join(dir, 'first-byte')
  return withServers(async (keep) => {
    const direct = await keep(startOwn(folder, 'chat.ts', String(PAUSE_MS)))
    const floor = await keep(startOwn(folder, 'relay.ts', direct.url, UPSTREAM_PATH))
    const ours = await keep(
      startGateway(folder, keys, direct.url, { models: { [ROUTE]: { upstream: `${direct.url}/v1` } } }),
    )
    const authorization = `Bearer ${sessionToken(keys.signer, `models:${ROUTE}`)}`
    const targets = {
      floor: { server: floor, traffic: traffic(UPSTREAM_PATH, {}, true) },
      ours: { server: ours, traffic: traffic(`/llm/${ROUTE}${UPSTREAM_PATH}`, { authorization }, true) },
    }
    return firstByteRow(await pairedFirstByte(targets, effort.quick ? 300 : 2_000))
  })
}

function traffic(at: string, headers: Readonly<Record<string, string>>, stream: boolean): Traffic {
  const messages = [{ role: 'user', content: 'milk, bread and '.repeat(60) }]
  const body = JSON.stringify({ model: 'bench-1', max_tokens: 100, stream, messages })
  const request = postBytes(at, { 'content-type': 'application/json', ...headers }, body)
  const end = stream ? '[DONE]' : '"finish_reason":"stop"'
  return { request: () => request, isRight: ({ status, body: text }) => status === 200 && text.includes(end) }
}

function cpuRows(cpu: CpuSamples<'floor' | 'ours' | 'peer'>, stream: boolean): Row[] {
  const [floor, ours, peer] = [cpu.micros('floor'), cpu.micros('ours'), cpu.micros('peer')]
  const kind = stream ? 'streamed completion, 64 chunks' : 'chat completion'
  const detail = `ours ${ours.toFixed(1)} µs, floor ${floor.toFixed(1)} µs, Portkey ${peer.toFixed(1)} µs`
  return [
    row({
      what: `${kind}, server CPU over floor`,
      value: cpu.over('ours', 'floor'),
      unit: '×',
      target: ['≤', stream ? 1 : 1.8],
      detail,
    }),
    row({ what: `${kind}, server CPU over Portkey`, value: cpu.over('ours', 'peer'), unit: '×', detail }),
  ]
}

function firstByteRow({ p50, p99, noise99 }: Awaited<ReturnType<typeof pairedFirstByte>>): Row {
  const noise = `the floor minus itself p99 ${noise99.toFixed(0)} µs`
  const detail = `ours minus floor in the same round: p50 ${p50.toFixed(0)} µs, p99 ${p99.toFixed(0)} µs; ${noise}`
  return row({ what: 'added time to the first byte, p99', value: p99 / 1000, unit: 'ms', target: ['≤', 1], detail })
}
