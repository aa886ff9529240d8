/** One valid object of each kind, for editors and documentation. @table */
import { API_VERSION, type Kind } from './kinds.ts'

const head = (kind: Kind, name: string, namespace = 'default') => ({
  apiVersion: API_VERSION,
  kind,
  metadata: namespace === '' ? { name } : { name, namespace },
})

export const examples: Readonly<Record<Kind, object>> = {
  Agent: {
    ...head('Agent', 'assistant'),
    spec: {
      image: 'example.com/assistant:1.0',
      tier: 'tier-0',
      policyRef: 'assistant',
      tools: [{ name: 'notes' }],
      model: {
        name: 'small-1',
        endpoint: 'https://models.example/v1',
        apiKeySecretRef: { name: 'models', key: 'api-key' },
      },
      budget: { perDayUSD: '10' },
    },
  },
  MCPServer: {
    ...head('MCPServer', 'notes'),
    spec: { url: 'http://127.0.0.1:8091/mcp', trust: 'trusted', dataClass: 'internal', timeoutSeconds: 10 },
  },
  ToolPolicy: {
    ...head('ToolPolicy', 'assistant'),
    spec: {
      rules: [
        { name: 'read', action: 'allow', match: { servers: ['notes'], tools: ['list_notes', 'read_note'] } },
        {
          name: 'delete',
          action: 'require_approval',
          match: { servers: ['notes'], tools: ['delete_note'] },
          reason: 'a note is deleted only after an approval',
        },
        {
          name: 'keep',
          action: 'deny',
          match: { servers: ['notes'], tools: ['delete_note'] },
          when: "args.name.startsWith('keep-')",
        },
      ],
    },
  },
  BudgetPolicy: {
    ...head('BudgetPolicy', 'team'),
    spec: { selector: { agents: ['assistant'] }, perDay: '50', tokensPerDay: 1000000, alerts: [50, 80, 100] },
  },
  MemoryStore: { ...head('MemoryStore', 'facts'), spec: { scope: 'user', retentionDays: 30 } },
  SovereigntyPolicy: {
    ...head('SovereigntyPolicy', 'eu', ''),
    spec: { allowedJurisdictions: ['EU'], requireJurisdiction: true },
  },
  TrustTier: { ...head('TrustTier', 'tier-1', ''), spec: { isolation: 'gvisor', runtimeClassName: 'gvisor' } },
  AgentSession: { ...head('AgentSession', 'assistant-1'), spec: { agentRef: 'assistant', user: 'ada', ttl: '1h' } },
  AgentRevocation: {
    ...head('AgentRevocation', 'stop-assistant'),
    spec: { target: { agent: 'default/assistant' }, reason: 'incident 4711' },
  },
  ConnectedAccount: {
    ...head('ConnectedAccount', 'ada-github'),
    spec: { user: 'ada', provider: 'github' },
  },
}
