import { jsonSchema } from '@plat/config'
import { gatewaySchema } from './config.ts'

/** A gateway.json beside resources/. */
const EXAMPLE = {
  sessionBudgetUSD: 1,
  approvalPreview: { mode: 'full' },
  models: { small: { upstream: 'https://models.example/v1', apiKeyFile: '/run/secrets/models' } },
}

/**
 * Returns the JSON Schema of the gateway.json beside resources/, for editors. No key is required at its top level: `plat up` adds those
 * that a gateway needs.
 */
export function gatewayEditorSchema(): object {
  return { ...jsonSchema({ ...gatewaySchema(), required: [] }, 'gateway.json'), examples: [EXAMPLE] }
}
