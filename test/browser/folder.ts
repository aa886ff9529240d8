import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export const AUDIENCE = 'plat-admin'
export const RESOURCE = 'https://plat.example/admin'
/** Far more than a slow machine needs between a login and the decision after it. */
const MAX_AGE_SECONDS = 900

/** For each million tokens. */
const PRICES = {
  version: 1,
  currency: 'EUR',
  id: 'test',
  models: { 'openai/small-*': { input: '1', output: '10' }, 'openai/*': { input: '5', output: '50' } },
}
/** Wh for each thousand tokens. */
const ENERGY = {
  version: 1,
  id: 'test',
  source: 'made for this test',
  models: { 'openai/*': { input: { min: '1', max: '2' }, output: { min: '10', max: '30' } } },
}

/** Addresses of what the gateway uses. */
interface Addresses {
  readonly notes: string
  readonly weather: string
  /** Base URL of a model provider. */
  readonly models: string
  /** Where people log in. */
  readonly issuer: string
}

/** Additions of a test. */
export interface FolderAdditions {
  /** Further keys of `gateway.json`. */
  readonly gateway?: object
  /** `toolLabels` of the server `notes`. */
  readonly toolLabels?: object
}

/** Writes everything that `plat up` reads: resources, prices, figures of energy, and `gateway.json`. */
export async function writeFolder(
  dir: string,
  urls: Addresses,
  { gateway = {}, toolLabels }: FolderAdditions = {},
): Promise<void> {
  const put = async (file: string, kind: string, spec: object) => {
    const target = join(dir, 'resources', file)
    await mkdir(dirname(target), { recursive: true })
    const metadata = { name: file.split('/').at(-1)?.replace('.yaml', ''), namespace: 'default' }
    await writeFile(target, JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec }))
  }
  await put('mcpservers/default/notes.yaml', 'MCPServer', { url: urls.notes, ...(toolLabels && { toolLabels }) })
  const toolPins = { mode: 'enforce', onChange: 'hide', allowUnpinned: false }
  await put('mcpservers/default/weather.yaml', 'MCPServer', { url: urls.weather, toolPins })
  await put('agents/default/assistant.yaml', 'Agent', {
    image: 'example.com/a:1',
    tier: 'tier-0',
    policyRef: 'assistant',
    tools: [{ name: 'notes' }, { name: 'weather' }],
    modelRoutes: ['chat'],
  })
  await put('agents/default/analyst.yaml', 'Agent', {
    image: 'example.com/a:1',
    tier: 'tier-0',
    policyRef: 'assistant',
    modelRoutes: ['chat'],
    budget: { currency: 'EUR', perDayUSD: '20' },
  })
  // A policy that does not exist, for the problems of resources.
  await put('agents/default/broken.yaml', 'Agent', { image: 'example.com/a:1', tier: 'tier-0', policyRef: 'missing' })
  const rules = [
    {
      name: 'hold',
      action: 'require_approval',
      match: { tools: ['delete_note'] },
      reason: 'deleting needs a second pair of eyes',
    },
    { name: 'never', action: 'deny', match: { tools: ['read_note'] }, reason: 'notes are not read' },
    { name: 'rest', action: 'allow', match: { tools: ['add_note', 'list_notes', 'forecast', 'watch'] } },
  ]
  await put('toolpolicies/default/assistant.yaml', 'ToolPolicy', { rules })
  await writeFile(join(dir, 'prices.json'), JSON.stringify(PRICES))
  await writeFile(join(dir, 'energy.json'), JSON.stringify(ENERGY))
  await writeFile(join(dir, 'gateway.json'), JSON.stringify({ ...gatewayKeys(dir, urls), ...gateway }))
}

function gatewayKeys(dir: string, { issuer, models }: Addresses): object {
  return {
    approvalAnswerAfterSeconds: 600,
    auditCheckpointIntervalSeconds: 1,
    approvalPreview: { mode: 'redacted', maxBytes: 4096 },
    pinCacheSeconds: 0,
    models: { chat: { upstream: models, namespaces: ['default'] } },
    energy: { file: join(dir, 'energy.json') },
    sessions: { traceURLTemplate: 'https://traces.example/{traceId}' },
    adminAuth: {
      mode: 'both',
      roles: { approver: ['leads'], viewer: ['staff'], admin: ['owners'] },
      stepUp: { accept: { maxAgeSeconds: MAX_AGE_SECONDS } },
      oidc: { issuer, audience: AUDIENCE, clientID: 'console', scopes: ['offline_access'], resource: RESOURCE },
    },
  }
}
