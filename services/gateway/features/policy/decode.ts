import {
  type Decoded,
  decodeRendered,
  type PolicyFile,
  policyFileSchema,
  type RuleEntry,
} from '@plat/resources/rendered'

/** Decodes a policyFile strictly; parts that this version does not enforce refuse the file. */
export function decodePolicies(bytes: Uint8Array): Decoded<PolicyFile> {
  return decodeRendered(policyFileSchema, bytes, unbuiltParts)
}

function unbuiltParts(file: PolicyFile): string[] {
  const out: string[] = []
  for (const [at, policy] of file.policies.entries()) {
    if (policy.mode !== 'enforce') out.push(`policies[${at}].mode`)
    if (policy.cedar !== '') out.push(`policies[${at}].cedar`)
    for (const [index, rule] of policy.rules.entries()) {
      for (const path of unbuiltOfRule(rule)) out.push(`policies[${at}].rules[${index}].${path}`)
    }
  }
  return out
}

function unbuiltOfRule(rule: RuleEntry): string[] {
  const out: string[] = []
  if (rule.match?.taints !== undefined) out.push('match.taints')
  if (rule.match?.sinks !== undefined) out.push('match.sinks')
  return out
}
