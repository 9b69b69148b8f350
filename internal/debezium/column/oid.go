package column

// Types by pg_type.oid. Types of extensions are known by name only.
const (
	oidBool        = 16
	oidBytea       = 17
	oidChar        = 18
	oidName        = 19
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidOID         = 26
	oidJSON        = 114
	oidXML         = 142
	oidPoint       = 600
	oidLseg        = 601
	oidPath        = 602
	oidBox         = 603
	oidPolygon     = 604
	oidLine        = 628
	oidCIDR        = 650
	oidFloat4      = 700
	oidFloat8      = 701
	oidCircle      = 718
	oidMacaddr8    = 774
	oidMoney       = 790
	oidMacaddr     = 829
	oidInet        = 869
	oidBpchar      = 1042
	oidVarchar     = 1043
	oidDate        = 1082
	oidTime        = 1083
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidInterval    = 1186
	oidTimetz      = 1266
	oidBit         = 1560
	oidVarbit      = 1562
	oidNumeric     = 1700
	oidRefcursor   = 1790
	oidUUID        = 2950
	oidTsvector    = 3614
	oidJSONB       = 3802
	oidInt4range   = 3904
	oidNumrange    = 3906
	oidTsrange     = 3908
	oidTstzrange   = 3910
	oidDaterange   = 3912
	oidInt8range   = 3926
)
