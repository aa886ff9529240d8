import { isAbsolute, relative, resolve } from 'node:path'
import { defineBlock, type Problem, type RuleOf } from '@plat/config'
import Type from 'typebox'

const schema = Type.Object({
  tenantsFile: Type.String({
    default: '',
    file: 'error',
    description:
      'Tenant list, the same as `-tenants-file` of the broker; single tenant when empty. Followed while the gateway runs.',
  }),
  tenantLedgerDir: Type.String({
    default: '',
    description: 'Ledgers `<dir>/<tenant>/audit.jsonl`; default `<dir of auditPath>/tenants`.',
  }),
})

function error(path: string, message: string): Problem {
  return { path, message, severity: 'error' }
}

/** An edge spools one ledger, so that the records of tenants would not leave it. */
const notAtAnEdge: RuleOf<typeof schema> = ({ tenantsFile }, { offline }) => {
  const isEdge = typeof offline === 'object' && offline !== null && 'enabled' in offline && offline.enabled === true
  return tenantsFile !== '' && isEdge ? [error('tenantsFile', 'cannot be combined with offline.enabled')] : []
}

/** Without the list the folder would stay empty; and a tenant's ledger must not be a file beside the fleet's. */
const folderFits: RuleOf<typeof schema> = ({ tenantsFile, tenantLedgerDir = '' }, { auditPath }) => {
  if (tenantLedgerDir === '') return []
  if (tenantsFile === '' || tenantsFile === undefined) return [error('tenantLedgerDir', 'needs tenantsFile')]
  if (typeof auditPath !== 'string') return []
  const inside = relative(resolve(auditPath), resolve(tenantLedgerDir))
  const isInside = inside === '' || !(inside.startsWith('..') || isAbsolute(inside))
  return isInside ? [error('tenantLedgerDir', 'must not be auditPath')] : []
}

/** Tenants (docs/tenants.md). */
export const tenantsBlock = defineBlock({ path: '', feature: 'tenants', schema, rules: [notAtAnEdge, folderFits] })
