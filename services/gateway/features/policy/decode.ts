import { type Decoded, decodeRendered, type PolicyFile, policyFileSchema } from '@plat/resources/rendered'

/** Decodes a policyFile strictly; parts that this version does not enforce refuse the file. */
export function decodePolicies(bytes: Uint8Array): Decoded<PolicyFile> {
  return decodeRendered(policyFileSchema, bytes, unbuiltParts)
}

function unbuiltParts(file: PolicyFile): string[] {
  const out: string[] = []
  for (const [at, policy] of file.policies.entries()) {
    if (policy.mode !== 'enforce') out.push(`policies[${at}].mode`)
    if (policy.cedar !== '') out.push(`policies[${at}].cedar`)
  }
  return out
}
