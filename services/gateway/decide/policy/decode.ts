import { type Decoded, decodeRendered, type PolicyFile, policyFileSchema } from '@plat/resources/rendered'

export function decodePolicies(bytes: Uint8Array): Decoded<PolicyFile> {
  return decodeRendered(policyFileSchema, bytes, () => [])
}
