export { createProfiling } from './profiling.ts'
export { bindToSvid, type SvidOptions, type SvidResult } from './svid.ts'
export { tlsOf } from './tls.ts'
