import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { startAnthropicServer } from '@plat/testkit/model/anthropic'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { type GatewayFixture, started } from './started.ts'

const DAY_SECONDS = 86_400
const ROUTES = ['plain', 'slow', 'argued', 'minute', 'claude']
const KEY = `sk-${randomBytes(8).toString('hex')}`

const RULES = [
  { name: 'no-large', action: 'deny', match: { tools: ['large-*'] }, reason: 'large models are for research' },
  { name: 'slow', action: 'allow', match: { servers: ['llm/slow'] }, rateLimit: rate(1) },
  { name: 'small-answers', action: 'allow', match: { servers: ['llm/argued'] }, when: 'args.max_tokens <= 100' },
  { name: 'rest', action: 'allow', match: { servers: ['llm/plain', 'llm/minute', 'llm/claude'] } },
]

function rate(count: number) {
  return { count, seconds: DAY_SECONDS, per: 'session' }
}

const price = (output: string) => ({ input: '0.01', output })
const PRICES = {
  version: 1,
  currency: 'EUR',
  id: 'p',
  models: {
    'openai/*': price('0.01'),
    'anthropic/*': price('0.01'),
    'openai/dear': price('90000'),
    'anthropic/dear': price('90000'),
  },
}

/** A gateway with a route for each reason to refuse a call, in front of scripted providers. */
export interface RefusingGateway extends GatewayFixture {
  readonly url: string
  readonly token: string
  readonly openai: ModelServer
  readonly anthropic: Awaited<ReturnType<typeof startAnthropicServer>>
}

export async function refusingGateway(t: TestContext): Promise<RefusingGateway> {
  const dir = tempFolder()
  const [openai, anthropic] = await Promise.all([startModelServer(), startAnthropicServer(KEY)])
  t.after(() => Promise.all([openai.close(), anthropic.close()]))
  const upstream = openai.url
  await Promise.all([
    writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules: RULES })])),
    writeFile(join(dir, 'prices.json'), JSON.stringify(PRICES)),
    writeFile(join(dir, 'key'), KEY),
  ])
  const fixture = await started(t, {
    policyFile: join(dir, 'policies.json'),
    pricingFile: join(dir, 'prices.json'),
    modelPolicy: 'policy',
    sessionBudgetUSD: 5,
    models: {
      plain: { upstream },
      slow: { upstream },
      argued: { upstream },
      minute: { upstream, requestsPerMinute: 1 },
      claude: { provider: 'anthropic', upstream: anthropic.url, apiKeyFile: join(dir, 'key') },
    },
  })
  const token = fixture.issuer.token({ scope: ROUTES.map((name) => `models:${name}`).join(' ') })
  return { ...fixture, url: fixture.gateway.url, token, openai, anthropic }
}
