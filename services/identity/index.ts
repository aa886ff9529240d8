export type { IdentitySettings } from './flags.ts'
export { type Identity, type StartIdentityOptions, startIdentity } from './start.ts'
