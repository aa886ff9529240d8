import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { startBatchesServer } from '@plat/testkit/batches-server'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import OpenAI, { toFile } from 'openai'
import { type Ends, type GatewayFixture, started } from './started.ts'

const SCOPES = 'models:r models.files:r models.batches:r'

/** One micro-unit for each input token, two for each output token; half of it in batches. */
export const PRICES = {
  version: 1,
  currency: 'USD',
  id: 'batches',
  models: {
    'openai/m': { input: '1', output: '2', multipliers: { 'batch=true': '0.5' } },
    'anthropic/m': { input: '1', output: '2' },
  },
}

export const sub = (agent: string, session: string) => ({
  sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/${agent}/session/${session}`,
  plat_agent: agent,
  plat_session: session,
})

/** A provider of batches, and a function that starts a gateway in front of it, with the official clients. */
export async function batchesSetup(ends: Ends) {
  const provider = await startBatchesServer()
  ends.after(() => provider.close())
  const dir = tempFolder()
  const pricingFile = join(dir, 'prices.json')
  await writeFile(pricingFile, JSON.stringify(PRICES))
  const auditPath = join(dir, 'audit.jsonl')
  const gateway = async (config: object = {}, { route = {} } = {}) => {
    const models = { r: { upstream: provider.url, ...route } }
    const running = await started(ends, { models, auditPath, pricingFile, ...config }, true)
    let draining: Promise<unknown> | null = null
    const drain = async () => {
      draining ??= running.gateway.drain()
      await draining
    }
    ends.after(drain)
    return { ...running, ...clientsOf(running), drain }
  }
  return { provider, dir, auditPath, gateway }
}

/** The official clients of an agent. */
export function clientsOf({ gateway, issuer }: GatewayFixture) {
  const token = (claims: object) => issuer.token({ scope: SCOPES, ...claims })
  return {
    openai: (claims: object = {}, path = '/llm/r/v1') =>
      new OpenAI({ baseURL: gateway.url + path, apiKey: token(claims), maxRetries: 0 }),
    claude: (claims: object = {}) =>
      new Anthropic({ baseURL: `${gateway.url}/llm/r`, authToken: token(claims), apiKey: null, maxRetries: 0 }),
  }
}

/** A request in a file of OpenAI's API. */
export function line(id: string, body: object = {}, more: object = {}): object {
  const messages = [{ role: 'user', content: 'hi' }]
  return {
    ...{ custom_id: id, method: 'POST', url: '/v1/chat/completions' },
    body: { model: 'm', max_tokens: 100, messages, ...body },
    ...more,
  }
}

export async function uploaded(client: OpenAI, lines: readonly object[]) {
  const text = lines.map((one) => `${JSON.stringify(one)}\n`).join('')
  return client.files.create({ file: await toFile(Buffer.from(text), 'b.jsonl'), purpose: 'batch' })
}

export async function createdBatch(client: OpenAI, lines: readonly object[]) {
  const { id } = await uploaded(client, lines)
  return client.batches.create({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' })
}
