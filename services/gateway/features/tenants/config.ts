import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** Tenants (document 3). */
export const tenantsBlock = {
  path: '',
  feature: 'tenants',
  built: false,
  schema: Type.Object({
    tenantsFile: Type.String({ default: '', description: 'Tenant list; single tenant when empty.' }),
    tenantLedgerDir: Type.String({
      default: '',
      description: 'Ledgers `<dir>/<tenant>/audit.jsonl`; default `<dir of auditPath>/tenants`.',
    }),
  }),
} satisfies ConfigBlock
