import { type Decoded, decodeRendered, type PolicyFile, policyFileSchema } from '@plat/resources/rendered'

/** Decodes a policyFile strictly. */
export function decodePolicies(bytes: Uint8Array): Decoded<PolicyFile> {
  return decodeRendered(policyFileSchema, bytes, () => [])
}
