export { createProfiling } from './profiling.ts'
export { bindToSvid, type SvidOptions } from './svid.ts'
export { tlsOf } from './tls.ts'
