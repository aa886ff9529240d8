export { type Bundle, type BundleFault, readBundle } from './read.ts'
export { algorithmsOf, type BundleKeys, isSigned, type SignaturePolicy } from './signatures.ts'
export type { BundleStatement } from './statement.ts'
export { type BundleContent, writeBundle } from './write.ts'
