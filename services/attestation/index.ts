export type { AttestationSettings } from './flags.ts'
export { type Attestation, type StartAttestationOptions, startAttestation } from './start.ts'
