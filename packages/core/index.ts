export { type Clock, systemClock, TestClock } from './clock.ts'
export { base32, type Ids, systemIds } from './ids.ts'
