package org.apache.kafka.connect.runtime.isolation;

import java.util.Locale;

/**
 * Stands in for how Connect's workers look for plugins: by manifests alone, unless a test asks for a scan. Each
 * worker would read all classes of the class path and of the JDK, half the time of a test, to compare the two.
 */
public enum PluginDiscoveryMode {
    ONLY_SCAN, HYBRID_WARN, HYBRID_FAIL, SERVICE_LOAD;

    public boolean reflectivelyScan() {
        return this == ONLY_SCAN;
    }

    public boolean serviceLoad() {
        return this != ONLY_SCAN;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
