export type { KeyCallResult, KeyOperation, KeyServiceName } from './calls.ts'
export { createKeyServices, type KeyServices, type KeyServicesOptions } from './store.ts'
