import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'

const dir = tempFolder()
const file = join(dir, 'energy.json')
/** Responds on any path: those of clouds contain the region. */
const upstream = createServer((request, response) => {
  request.resume().on('end', () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 }
    const message = { role: 'assistant', content: 'Hello' }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
  })
})
let gateway: GatewayProcess

const table = (id: string, min: string) => ({
  version: 1,
  id,
  source: 'a test',
  models: { 'openai/small-*': { input: { min, max: '0.2' }, output: { min: '1', max: '2' } }, 'vertex/*': OUTPUT },
  regions: { here: { min: '100', max: '200' }, 'eu-*': { min: '10', max: '20' } },
})
const OUTPUT = { input: { min: '0', max: '0' }, output: { min: '1', max: '1' } }

before(async () => {
  const url = `http://127.0.0.1:${await listening(upstream)}/v1`
  await writeFile(file, JSON.stringify(table('one', '0.1')))
  const vertex = { provider: 'vertex', mode: 'openai', project: 'p', region: 'eu-north1', auth: { type: 'none' } }
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ['models:small', 'models:cloud'],
    config: {
      models: {
        small: { upstream: url },
        cloud: { upstream: url, ...vertex },
      },
      energy: { file, defaultRegion: 'here' },
      policyReloadSeconds: 1,
    },
  })
})
after(async () => {
  await gateway.close()
  await closed(upstream)
})

/** Makes a call and returns `energy` of its outcome record. */
async function energyOf(route: string, model: string): Promise<unknown> {
  const before = await outcomes()
  const response = await fetch(`${gateway.url}/llm/${route}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi.' }] }),
  })
  assert.equal(response.status, 200, await response.text())
  await until(async () => (await outcomes()).length > before.length, 'the record of the call')
  const rec = (await outcomes()).at(-1)
  assert.equal(rec?.model, model)
  return rec?.energy
}

async function outcomes() {
  const records = (await gateway.ledger()).map((line) => JSON.parse(line).rec)
  return records.filter(({ kind }) => kind === 'outcome')
}

test('with a file of factors the record of each known model call has bounds of energy and carbon', async () => {
  // Shows D3.cost.energy.enabled, D3.cost.energy.file, D3.cost.energy.defaultRegion.
  const microWh = { min: 200_000, max: 400_000 }
  const microgCO2e = { min: 20_000, max: 80_000 }
  assert.deepEqual(await energyOf('small', 'small-1'), { microWh, microgCO2e, region: 'here', table: 'one' })
  assert.deepEqual(await energyOf('cloud', 'small-1'), {
    microWh: { min: 100_000, max: 100_000 },
    microgCO2e: { min: 1000, max: 2000 },
    region: 'eu-north1',
    table: 'one',
  })
  assert.equal(await energyOf('small', 'other'), undefined)
})

test('a new table applies from the next call, and an invalid one leaves the previous one in force', async () => {
  await writeFile(file, JSON.stringify(table('two', '0.2')))
  const estimate = async () => JSON.stringify((await energyOf('small', 'small-1')) ?? null)
  let energy = ''
  await until(async () => {
    energy = await estimate()
    return energy.includes('"two"')
  }, 'the second table')
  assert.match(energy, /"microWh":\{"max":400000,"min":300000\}/)
  await writeFile(file, JSON.stringify({ ...table('three', '0.2'), source: '' }))
  const refused = () => gateway.complaints().some((line) => line.includes('energy.file is refused'))
  await until(refused, 'the complaint')
  assert.match(gateway.complaints().join('\n'), /source: .*the factors read before stay in force/)
  assert.match(await estimate(), /"table":"two"/)
})
