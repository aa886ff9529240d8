import { jsonSchema } from '@plat/config'
import { Type } from 'typebox'
import { gatewaySchema } from './config.ts'

/** A gateway.json beside resources/. */
const EXAMPLE = {
  sessionBudgetUSD: 1,
  approvalPreview: { mode: 'full' },
  models: { small: { upstream: 'https://models.example/v1', apiKeyFile: '/run/secrets/models' } },
}

const SCHEMA = Type.String({ description: 'This schema, for editors; without effect on the gateway.' })

/**
 * Returns the JSON Schema of the gateway.json beside resources/, for editors. No key is required at its top level: `plat up` adds those
 * that a gateway needs.
 */
export function gatewayEditorSchema(): object {
  const schema = gatewaySchema()
  const properties = { $schema: SCHEMA, ...schema.properties }
  return { ...jsonSchema({ ...schema, properties, required: [] }, 'gateway.json'), examples: [EXAMPLE] }
}
